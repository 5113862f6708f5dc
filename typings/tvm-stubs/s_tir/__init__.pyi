"""Loops with blocks, as a type checker should see them."""

from . import analysis as analysis
from . import dlight as dlight
from . import schedule as schedule
from . import transform as transform
from .schedule import Schedule as Schedule
from .schedule import ScheduleError as ScheduleError
from .stmt import MatchBufferRegion as MatchBufferRegion
from .stmt import SBlock as SBlock
from .stmt import SBlockRealize as SBlockRealize
