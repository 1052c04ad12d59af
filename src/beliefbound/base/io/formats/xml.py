"""XML from strangers: parsed by defusedxml, which expands no entities and follows no addresses. Elements know their
line, so that an error can name it."""

from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element, ParseError

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import DefusedXMLParser

from beliefbound.base.errors import FileError
from beliefbound.base.io.formats.hidden_model import as_number, read_text


class _Parser(DefusedXMLParser):  # type: ignore[misc]
    """Notes the line of each element, and drops namespaces from its name."""

    def _start(self, tag: str, attributes: Any) -> Any:
        element = super()._start(tag.rpartition("}")[2], attributes)
        element.line = self.parser.CurrentLineNumber
        return element

    def _end(self, tag: str) -> Any:
        return super()._end(tag.rpartition("}")[2])


class Xml:
    """A document, and its errors: each names the file and the line."""

    def __init__(self, path: Path, root: str) -> None:
        self.path = path
        parser = _Parser(forbid_dtd=True)
        try:
            parser.feed(read_text(path))
            self.root: Element = parser.close()
        except DefusedXmlException as cause:
            raise FileError(
                f"{path} declares its own document type or entities ({type(cause).__name__}), which are not read; "
                f"remove the declaration"
            ) from None
        except (ParseError, LookupError, ValueError) as cause:
            if isinstance(cause, FileError):
                raise
            raise FileError(f"{path} is no XML: {cause}") from None
        if self.root.tag != root:
            raise FileError(f"{path} is a <{self.root.tag}> document; expected <{root}>")

    def wrong(self, element: Element | None, fault: str) -> FileError:
        """The error that says what is wrong with an element."""
        if element is None:
            return FileError(f"{self.path}: {fault}")
        return FileError(f"{self.path}, line {getattr(element, 'line', '?')}, <{element.tag}>: {fault}")

    def one(self, parent: Element, tag: str) -> Element:
        """The one child of a name."""
        found = parent.findall(tag)
        if len(found) != 1:
            raise self.wrong(parent, f"needs one <{tag}>, has {len(found)}")
        return found[0]

    def words(self, element: Element) -> list[str]:
        """The text of an element, word by word."""
        return (element.text or "").split()

    def numbers(self, element: Element) -> list[float]:
        """The text of an element as numbers."""
        found = []
        for word in self.words(element):
            try:
                found.append(as_number(word))
            except ValueError:
                raise self.wrong(element, f"{word[:40]!r} is not a number up to 1e300") from None
        return found

    def attribute(self, element: Element, name: str) -> str:
        """An attribute that must be there."""
        value = element.get(name)
        if not value:
            raise self.wrong(element, f"has no attribute {name!r}")
        return value
