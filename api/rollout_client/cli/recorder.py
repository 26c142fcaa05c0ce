"""The JSONL file of a job: each finished rollout exactly once, however often it is resumed.

Lines are only appended, and whole. What an interrupted run left of a line is cut off, and records
that are already there are skipped by their rollout id.
"""

import fcntl
import json
import os
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from rollout_client.cli.failure import CliError


class RecordFile:
    """An open JSONL file for the records of one job.

    Args:
        path: The file; made when it is missing.
        job_uid: The job. A file of an earlier job of the same name is moved aside first.

    Raises:
        CliError: The file cannot be written, is no file of records, or another run writes to it.
    """

    def __init__(self, path: Path, job_uid: str) -> None:
        self.path = path
        self.moved_to: Path | None = None
        """Where the file of an earlier job went."""
        self._written: set[str] = set()
        self._file = self._open()
        owner = self._read_back()
        if owner not in {None, job_uid}:
            self._move_aside(str(owner))

    @property
    def count(self) -> int:
        """Records in the file."""
        return len(self._written)

    def append(self, lines: Iterable[str]) -> int:
        """Append the records that are not there yet; returns how many those were."""
        new = {json.loads(line)["rollout_id"]: line for line in lines}
        fresh = [line for key, line in new.items() if key not in self._written]
        if fresh:
            self._file.write("".join(f"{line}\n" for line in fresh).encode())
            self._file.flush()
            os.fsync(self._file.fileno())
        self._written.update(new)
        return len(fresh)

    def close(self) -> None:
        """Close the file."""
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

    def _open(self) -> BinaryIO:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            file = self.path.open("a+b")
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

    def _move_aside(self, owner: str) -> None:
        self._file.close()
        self.moved_to = self.path.with_suffix(f".{owner[:8]}{self.path.suffix}")
        self.path.rename(self.moved_to)
        self._written.clear()
        self._file = self._open()
