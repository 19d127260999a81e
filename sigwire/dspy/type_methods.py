"""DSPy's methods of types of fields: the bases of the door's types."""

from __future__ import annotations

import os
import warnings
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.record import FieldValues
from sigwire.dspy.marks import content_parts, marked
from sigwire.errors import InputError
from sigwire.signatures.annotations import nested_types
from sigwire.signatures.types.base import FieldType

if TYPE_CHECKING:
    from sigwire.lm.base import LanguageModel
    from sigwire.signatures.signature import SignatureClass

__all__ = ["FieldMethods", "MediumMethods", "TypeMethods"]


class TypeMethods:
    """DSPy's class methods of a type."""

    __slots__ = ()
    _also: ClassVar[tuple[type, ...]] = ()

    @classmethod
    def description(cls) -> str:
        """Return the description of the type for a model."""
        return ""

    @classmethod
    def extract_custom_type_from_annotation(cls, annotation: object) -> list[type]:
        """Return the types of this class in a type expression.

        >>> from sigwire.dspy.types import Document, Type
        >>> [kind.__name__ for kind in Type.extract_custom_type_from_annotation(dict[str, list[Document]])]
        ['Document']
        """
        kinds = (cls, *vars(cls).get("_also", ()))
        found = [kind for kind in nested_types(annotation, records=False) if isinstance(kind, type)]
        return [kind for kind in reversed(found) if issubclass(kind, kinds)]

    @classmethod
    def is_streamable(cls) -> bool:
        """Return True if the type is made of chunks of a stream."""
        return False

    @classmethod
    def parse_lm_response(cls, response: str | FieldValues) -> object:
        """Return the value that an output of a model has beside its text, else ``None``."""
        return None

    @classmethod
    def adapt_to_native_lm_feature(
        cls, signature: SignatureClass, field_name: str, lm: LanguageModel, lm_kwargs: FieldValues
    ) -> SignatureClass:
        """Return the signature without the field if the model has its own feature for it."""
        return signature


class FieldMethods(TypeMethods, FieldType):
    """DSPy's methods of the core's types."""

    __slots__ = ()

    @classmethod
    def model_validate(cls, value: object) -> Self:
        """Return the value of any accepted form. Raises ``ValueError``."""
        return cls.read(value)

    def model_dump(self, **options: object) -> JsonValue:
        """Return the value as plain JSON."""
        return self.to_json()


class MediumMethods(FieldMethods):
    """DSPy's methods of images, sounds and files."""

    __slots__ = ()
    is_refused_at_call: ClassVar[bool] = True
    """As an output the type is refused by the first call: DSPy allows the declaration."""

    @classmethod
    def from_path(cls, path: str | os.PathLike[str], **options: Any) -> Self:
        """Read a file. Raises ``InputError`` if there is none."""
        if not os.path.isfile(path):
            raise InputError(f"File not found: {os.fspath(path)!r} (reading {cls.__name__}). Check the path.")
        made: Self = cast(Any, super()).from_path(path, **options)
        return made

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> Self:
        """Another name of ``from_path``, which DSPy deprecates: a ``DeprecationWarning``."""
        warnings.warn(f"{cls.__name__}.from_file is deprecated: use from_path.", DeprecationWarning, stacklevel=2)
        return cls.from_path(path)

    def __setattr__(self, name: str, value: object) -> None:
        raise InputError(
            f"{type(self).__name__} is frozen (setting {name!r}). Make a new one."
        )  # pydantic: a ValueError

    def format(self) -> list[JsonObject]:
        """Return the medium as OpenAI content parts."""
        return content_parts(self)

    def __str__(self) -> str:
        return marked(self.format())
