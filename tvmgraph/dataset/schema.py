"""Descriptions of columns: names, types and shapes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tvmgraph import dtypes
from tvmgraph.core.shown import Shown
from tvmgraph.errors import ArgumentError, either, reject


class Schema(Shown):
    """Columns of a source, with their types and shapes.

    Args:
        schema_file: A JSON file: ``{"columns": {"image": {"type": "uint8", "shape": [3]}}}``, which
            may say how many rows are read: ``"numRows": 3``.

    Example:
        >>> schema = dataset.Schema()
        >>> schema.add_column("label", ms.int32, [1])
    """

    def __init__(self, schema_file: str | None = None) -> None:
        self.columns: dict[str, tuple[dtypes.DType, Sequence[int] | None]] = {}
        self.num_rows: int | None = None
        if schema_file is not None:
            self.from_json(json.loads(Path(schema_file).read_text()))

    def from_json(self, json_obj: Mapping[str, object]) -> None:
        """Takes columns, and possibly a number of rows, from what a ``schema_file`` holds.

        Args:
            json_obj: Its content.
        """
        self.parse_columns(json_obj["columns"])
        rows = json_obj.get("numRows")
        self.num_rows = rows if isinstance(rows, int) else None

    def add_column(self, name: str, de_type: object, shape: Sequence[int] | None = None) -> None:
        """Adds a column.

        Args:
            name: Its name.
            de_type: Its dtype; ``"string"`` for text.
            shape: Shape of a row's entry; -1 or None for an axis of any size.
        """
        sizes = None if shape is None else tuple(-1 if s is None else int(s) for s in shape)
        is_text = de_type in ("string", dtypes.string)
        self.columns[name] = (dtypes.string if is_text else dtypes.dtype_of(de_type), sizes)

    def to_json(self) -> str:
        """Returns the columns as the text that ``schema_file`` holds."""
        columns = [
            {"name": name, "rank": 1 if shape is None else len(shape)}
            | ({} if shape is None else {"shape": list(shape)}) | {"type": dtype.name}
            for name, (dtype, shape) in self.columns.items()
        ]  # fmt: skip
        return json.dumps({"columns": columns}, indent=2)

    __str__ = to_json

    def parse_columns(self, columns: Any) -> None:
        """Adds columns from a dict by name, or a list of dicts with ``name``.

        Args:
            columns: Types, and possibly shapes: ``{"label": {"type": "int64", "shape": [1]}}``,
                or that the rank is 0; those of a dict are sorted by name.

        Raises:
            ArgumentError: if a column has no name or no type.
        """
        named = isinstance(columns, dict)
        for column in columns.values() if named else columns:
            missing = {"type", "name"} - {*column, *(["name"] if named else [])}
            if missing:
                reject(either(ArgumentError, RuntimeError), "Schema.parse_columns",
                       f"a column has no {sorted(missing)[0]}: {column}")  # fmt: skip
        items = sorted(columns.items()) if named else [(c["name"], c) for c in columns]
        for name, column in items:
            unsaid = () if column.get("rank") == 0 else None
            self.add_column(name, column["type"], column.get("shape", unsaid))


__all__ = ["Schema"]
