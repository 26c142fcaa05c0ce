"""The JSONL file of a job: each finished rollout exactly once, however often it is resumed.

Lines are only appended, and whole. What an interrupted run left of a line is cut off, and records
that are already there are skipped by their rollout id.
"""

import fcntl
import json
import os
from collections.abc import Iterable
from io import FileIO
from pathlib import Path
from types import TracebackType
from typing import Self

from rollout_client.cli.failure import CliError


class RecordFile:
    """An open JSONL file for the records of one job; none is left when there are no records.

    Args:
        path: The file; made when it is missing.

    Raises:
        CliError: The file cannot be written, is no file of records, or another run writes to it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._written: set[str] = set()
        self._is_new = not path.exists()
        self._file = self._open()
        self._owner = self._read_back()

    def assign(self, job_uid: str) -> Path | None:
        """Make it the file of a job; returns where the file of an earlier job was moved, if any."""
        if self._owner in {None, job_uid}:
            return None
        return self._move_aside(str(self._owner))

    @property
    def count(self) -> int:
        """Records in the file."""
        return len(self._written)

    def append(self, lines: Iterable[str]) -> int:
        """Append the records that are not there yet; returns how many those were.

        Raises:
            CliError: The file cannot be written any more.
        """
        new = {json.loads(line)["rollout_id"]: line for line in lines}
        fresh = [line for key, line in new.items() if key not in self._written]
        if fresh:
            self._write("".join(f"{line}\n" for line in fresh).encode())
        self._written.update(new)
        return len(fresh)

    def close(self) -> None:
        """Close the file."""
        if self._is_new and not self._written:
            self.path.unlink(missing_ok=True)
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _open(self) -> FileIO:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            file = self.path.open("a+b", buffering=0)
        except OSError as error:
            msg = f"{self.path}: cannot be written: {error.strerror}; name another with --output"
            raise CliError(msg) from error
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            file.close()
            msg = f"{self.path}: another run writes to it; name another with --output"
            raise CliError(msg) from error
        return file

    def _write(self, data: bytes) -> None:
        end = self._file.seek(0, os.SEEK_END)
        try:
            while data:
                data = data[self._file.write(data) :]
            os.fsync(self._file.fileno())
        except OSError as error:
            self._file.truncate(end)
            msg = (
                f"{self.path}: cannot be written: {error.strerror}; when that is mended, run it "
                "again: no record is lost"
            )
            raise CliError(msg) from error

    def _read_back(self) -> str | None:
        """Learn which records are there and cut off half a line; returns the job they are of."""
        owner: str | None = None
        self._file.seek(0)
        end = 0
        for number, line in enumerate(self._file, start=1):
            if not line.endswith(b"\n"):
                break
            record = self._record(line, number)
            owner = str(record["job_uid"])
            self._written.add(str(record["rollout_id"]))
            end += len(line)
        self._file.truncate(end)
        return owner

    def _record(self, line: bytes, number: int) -> dict[str, object]:
        try:
            record: dict[str, object] = json.loads(line)
            return {key: record[key] for key in ("job_uid", "rollout_id")}
        except (ValueError, KeyError, TypeError) as error:
            self._file.close()
            msg = f"{self.path}:{number}: is not a record of a rollout; name another with --output"
            raise CliError(msg) from error

    def _move_aside(self, owner: str) -> Path:
        self._file.close()
        aside = self.path.with_suffix(f".{owner[:8]}{self.path.suffix}")
        self.path.rename(aside)
        self._written.clear()
        self._is_new = True
        self._file = self._open()
        return aside
