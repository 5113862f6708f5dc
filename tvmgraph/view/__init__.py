"""Pictures of graphs: SVG for notebooks and a viewer in one HTML file.

Layout is done by the Eclipse Layout Kernel (elkjs, EPL-2.0, shipped as ``elk.bundled.js``).
"""

from tvmgraph.view.draw import Drawing, draw, draw_pair
from tvmgraph.view.model import Kernel, model_of
from tvmgraph.view.page import Viewer, viewer_page

__all__ = ["Drawing", "Kernel", "Viewer", "draw", "draw_pair", "model_of", "viewer_page"]
