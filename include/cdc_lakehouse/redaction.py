"""Text of other programs made fit for logs, reports and terminals: no payload values, no control characters.

Our own sentences contain no values. Spark, Arrow and Python put a value that they cannot convert into their
messages, in quotation marks or as a bare number. Names of topics and columns may contain any character.
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterator

_WITHHELD = "…"
_LONGEST_MESSAGE = 300
_QUOTE = re.compile(r"['\"]")
_NUMBER = re.compile(r"(?<![\w.])(?<!SQLSTATE: )-?\d+(?:[.,:eE+-]+\d+)*")
_CONDITION = re.compile(r"\[([A-Z][A-Z0-9_.]+)\]")
"""Spark's name of what went wrong, like `[CAST_INVALID_INPUT]`."""
_DATA_STATE = re.compile(r"SQLSTATE: 2[23]\w{3}")
"""Data exceptions and violated constraints: their messages are made of values."""
_PY4J = re.compile(r"An error occurred while calling [\w.$]+\.\s*\n: ")
_MESSAGE = re.compile(r"(?<=Exception: )|(?<=Error: )|(?=\[[A-Z][A-Z0-9_.]+\] )")
"""The beginning of an exception's message in a foreign log line."""
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_SPACES = re.compile(r"[ \t\r\n]*[\t\r\n][ \t\r\n]*")
_THROWN = re.compile(r"(?:Caused by: |Suppressed: |: )*(?:[a-z]\w*\.)+[\w$]+(?:: .*)?")
_FRAME = re.compile(
    r"\tat [\w.$/<>@-]+\([\w.$: ]+\)|\t\.\.\. \d+ more"
    r'|  File "[^"]+", line \d+, in [\w<>.]+'
    r"|Traceback \(most recent call last\):"
)


def message_without_values(text: str) -> str:
    """Return the first line of a foreign message, up to where it may contain a value.

    Everything after the first quotation mark is left out, since a value may itself contain quotation marks or
    line breaks. A Spark error about data is reduced to its name.
    """
    line = next(iter(_PY4J.sub("", text.strip()).splitlines()), "")
    condition = _CONDITION.search(line)
    if condition is not None and _DATA_STATE.search(text):
        return f"[{condition[1]}]"
    quote = _QUOTE.search(line)
    kept = line if quote is None else f"{line[: quote.start()]}{_WITHHELD}"
    return printable(_NUMBER.sub("#", kept))[:_LONGEST_MESSAGE]


def exception_without_values(exc: BaseException) -> str:
    """`<type>: <message>`."""
    return _with_message(type(exc).__name__, str(exc))


def traceback_without_values(exc: BaseException) -> str:
    """Frames, types and messages without values; what caused the exception comes first."""
    return "\n".join(_traceback_lines(traceback.TracebackException.from_exception(exc)))


def log_line_without_values(line: str) -> str:
    """Return a foreign log line in which the message of an exception has no values."""
    message = _MESSAGE.search(line)
    if message is None or is_stack_frame(line):
        return printable(line.expandtabs(4))
    return printable(line[: message.start()]) + message_without_values(line[message.start() :])


def is_stack_frame(line: str) -> bool:
    return _FRAME.fullmatch(line) is not None


def is_thrown(line: str) -> bool:
    """Return whether the line names a Java exception, below the log line that reports it."""
    return _THROWN.fullmatch(line) is not None


def printable(text: str) -> str:
    """Return the text with control characters spelled out: no line breaks, no terminal escapes."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else _spell_out(char) for char in text)


def one_line(text: str) -> str:
    """Return the text in one line, without the colours that some libraries put into messages."""
    if text.isprintable():
        return text
    return printable(_SPACES.sub(" ", _COLOUR.sub("", text)).strip())


def printable_lines(text: str) -> str:
    """Return text of several lines in which each line is printable."""
    return "\n".join(map(printable, text.split("\n")))


def _spell_out(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def _with_message(kind: str, text: str) -> str:
    message = message_without_values(text)
    return f"{kind}: {message}" if message else kind


def _traceback_lines(error: traceback.TracebackException) -> Iterator[str]:
    """Yield lines from the structure that Python keeps, so that no value can look like a frame."""
    if error.__cause__ is not None:
        yield from _traceback_lines(error.__cause__)
        yield "The above exception was the direct cause of the following exception:"
    elif error.__context__ is not None and not error.__suppress_context__:
        yield from _traceback_lines(error.__context__)
        yield "During handling of the above exception, another exception occurred:"
    yield "Traceback (most recent call last):"
    for frame in error.stack:
        yield f'  File "{frame.filename}", line {frame.lineno}, in {frame.name}'
    text = str(error)
    yield _with_message("BaseException" if error.exc_type is None else error.exc_type.__name__, text)
    # The JVM and the workers write their stacks into the message.
    for line in text.splitlines()[1:]:
        if is_stack_frame(line):
            yield line
        elif is_thrown(line):
            yield log_line_without_values(line)
