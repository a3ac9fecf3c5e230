"""Recipes as text: their fields, and Python's values as the library reads them. Names, ranges and defaults come from the
library, so a new rule or decay needs no line here."""
from __future__ import annotations

from typing import Any, Iterable, List, NamedTuple, Tuple, Union

from . import _core

Settings = List[Tuple[str, str]]


class Field(NamedTuple):
    """A field of a recipe: its name, its value, the valid values as text, and what it is."""
    name: str
    value: Any
    valid: str
    help: str


def text_of(name: str, value: Any) -> str:
    """A keyword's value as the library reads it: numbers exactly, True as 'on', lists as 1,2,3."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, (list, tuple)):
        return ",".join(text_of(name, each) for each in value)
    try:
        return repr(float(value))
    except (TypeError, ValueError):
        raise TypeError(f"{name} is a {type(value).__name__}; give a number, a text or a list of numbers") from None


def settings_of(given: Iterable[Tuple[str, Any]]) -> Settings:
    return [(name, text_of(name, value)) for name, value in given]


def made(line: str, **given: Any) -> _core.Recipe:
    """The recipe of a line, "adamw decay=cautious beta2=0.95", with further fields by keyword."""
    if not isinstance(line, str):
        raise TypeError(f"a recipe is a text such as 'adamw decay=cautious', not a {type(line).__name__}")
    return _core.recipe(line, settings_of(given.items()))


def _value(text: str, kind: str) -> Any:
    if kind == "number":
        return float(text)
    if kind == "whole":
        return int(text)
    if kind == "numbers":
        return [float(each) for each in text.split(",") if each]
    return text


def fields_of(recipe: _core.Recipe) -> List[Field]:
    return [Field(name, _value(value, kind), valid, help) for name, value, valid, help, kind in _core.recipe_fields(recipe)]


def fields(recipe: Union[str, _core.Recipe]) -> List[Field]:
    """All fields of a recipe with their values: of the rule, `decay` and its own, `coupling` and `weight_decay`.

    >>> import cautious
    >>> {field.name: field.value for field in cautious.fields("adamw decay=cautious")}
    ... # doctest: +NORMALIZE_WHITESPACE
    {'beta1': 0.9, 'beta2': 0.999, 'eps': 1e-08, 'decay': 'cautious', 'mask': 'direction', 'coupling': 'plain',
     'weight_decay': 0.1}
    """
    return fields_of(made(recipe))
