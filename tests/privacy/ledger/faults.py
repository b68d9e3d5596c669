"""A disk that fails where it is told to: every step by which SQLite and Python change files, in a forked child.

Steps are SQLite's writes, truncations, syncs, deletions and new files, and the same calls of ``os``. At step n the
child is killed (before it, or half-way through a write), the disk is full from there on, or the power goes: then what
was written and not synced is lost, or any part of it.
"""

from __future__ import annotations

import ctypes
import errno
import os
import random
import stat
import warnings
from ctypes import CFUNCTYPE, POINTER, Structure, c_char_p, c_int, c_int64, c_void_p, cast
from dataclasses import dataclass, field
from pathlib import Path

_OK, _FULL, _CANTOPEN, _CREATE = 0, 13, 14, 0x4
_OPEN = CFUNCTYPE(c_int, c_void_p, c_void_p, c_void_p, c_int, POINTER(c_int))
_DELETE = CFUNCTYPE(c_int, c_void_p, c_char_p, c_int)
_WRITE = CFUNCTYPE(c_int, c_void_p, c_void_p, c_int, c_int64)
_TRUNCATE = CFUNCTYPE(c_int, c_void_p, c_int64)
_SYNC = CFUNCTYPE(c_int, c_void_p, c_int)
KILLED = 9
_METHODS = 18


class _Vfs(Structure):
    _fields_ = [
        ("version", c_int),
        ("file_size", c_int),
        ("path_most", c_int),
        ("next", c_void_p),
        ("name", c_char_p),
        ("data", c_void_p),
        ("open", c_void_p),
        ("delete", c_void_p),
    ]


class _Methods(Structure):
    _fields_ = [("version", c_int), ("calls", c_void_p * _METHODS)]


def find_vfs():
    """SQLite's own file system layer, as the sqlite3 module has it loaded; None where it is out of reach."""
    try:
        import _sqlite3

        library = ctypes.CDLL(_sqlite3.__file__)
        library.sqlite3_vfs_find.restype = POINTER(_Vfs)
        return library.sqlite3_vfs_find(None).contents
    except (ImportError, OSError, AttributeError):
        return None


@dataclass
class Fault:
    """What happens at which step; ``step`` None counts only."""

    kind: str = "none"
    step: int | None = None
    seed: int = 0
    disk: Path | None = None
    copy: Path | None = None
    steps: int = 0
    kept: list = field(default_factory=list)  # callbacks that C holds
    data: dict = field(default_factory=dict)  # what is on the disk: content by inode
    names: dict = field(default_factory=dict)  # and the entries of folders

    def reach(self):
        """Count a step; True if it must fail."""
        self.steps += 1
        if self.step is None or self.steps < self.step:
            return False
        if self.kind == "kill":
            os._exit(KILLED)
        if self.kind == "cut":
            self.step = None  # the copy is made undisturbed
            self.cut()
            os._exit(KILLED)
        return self.kind == "full"

    def is_half(self):
        return self.kind == "half" and self.steps == self.step

    # The disk as it would be after a power cut.

    def sync_all(self):
        """What is there before is on the disk."""
        for path in (self.disk, *self.disk.rglob("*")):
            (self.sync_folder if path.is_dir() else self.sync_file)(path)

    def sync_file(self, path):
        self.data[path.stat().st_ino] = path.read_bytes()

    def sync_folder(self, path):
        self.names[path] = {entry.name: entry.inode() for entry in os.scandir(path)}

    def cut(self):
        """Write to ``copy`` what is left: all that was synced and, with a seed, any part of the rest."""
        chance = random.Random(self.seed) if self.seed else None
        self._leave(self.disk, self.copy, chance)

    def _leave(self, folder, copy, chance):
        present = {entry.name: entry.inode() for entry in os.scandir(folder)} if folder.is_dir() else {}
        synced = self.names.get(folder, {})
        listed = (
            synced
            if chance is None
            else {
                name: ino
                for name, ino in {**present, **synced}.items()
                if (name in synced) == (name in present) or chance.random() < 0.5
            }
        )
        by_number = {}
        for root, _, files in os.walk(self.disk):
            by_number.update({(Path(root) / name).stat().st_ino: Path(root) / name for name in files})
        copy.mkdir(exist_ok=True)
        for name, ino in listed.items():
            path = folder / name
            if path.is_dir() or path in self.names:
                self._leave(path, copy / name, chance)
                continue
            content = self.data.get(ino, b"")
            if chance is not None and ino in by_number and chance.random() < 0.5:
                content = by_number[ino].read_bytes()
            (copy / name).write_bytes(content)


def install(fault):
    """Put the fault between SQLite and the disk, and between Python and the disk; in this process, for good."""
    vfs = find_vfs()
    real_open, real_delete = _OPEN(vfs.open), _DELETE(vfs.delete)
    known, paths, fresh = {}, {}, set()

    def wrap(address):
        if address in known:
            return known[address]
        methods = _Methods.from_buffer_copy(cast(address, POINTER(_Methods)).contents)
        write, truncate, sync = _WRITE(methods.calls[2]), _TRUNCATE(methods.calls[3]), _SYNC(methods.calls[4])

        def on_write(file, buffer, amount, offset):
            if fault.reach():
                return _FULL
            if fault.is_half():
                write(file, buffer, amount // 2, offset)
                os._exit(KILLED)
            return write(file, buffer, amount, offset)

        def on_truncate(file, size):
            return _FULL if fault.reach() else truncate(file, size)

        def on_sync(file, flags):
            fault.reach()
            done = sync(file, flags)
            if paths.get(file) is not None:
                fault.sync_file(paths[file])
                if paths[file] in fresh:  # SQLite syncs the folder of a new journal with it
                    fault.sync_folder(paths[file].parent)
            return done

        callbacks = [_WRITE(on_write), _TRUNCATE(on_truncate), _SYNC(on_sync)]
        for place, callback in zip((2, 3, 4), callbacks, strict=True):
            methods.calls[place] = cast(callback, c_void_p).value
        fault.kept += [methods, write, truncate, sync, *callbacks]
        known[address] = ctypes.addressof(methods)
        return known[address]

    def on_open(this, name, file, flags, out):
        path = None if name is None else Path(os.fsdecode(ctypes.string_at(name)))  # SQLite keeps the pointer
        is_new = path is not None and bool(flags & _CREATE) and not path.exists()
        if is_new and fault.reach():
            return _CANTOPEN
        done = real_open(this, name, file, flags, out)
        if done == _OK:
            pointer = cast(file, POINTER(c_void_p))
            pointer[0] = wrap(pointer[0])
            paths[file] = path
            if is_new:
                fresh.add(path)
                fault.data.pop(path.stat().st_ino, None)  # the number of a file that is gone
        return done

    def on_delete(this, name, sync):
        fault.reach()
        done = real_delete(this, name, sync)
        if sync:
            fault.sync_folder(Path(os.fsdecode(name)).parent)
        return done

    callbacks = [_OPEN(on_open), _DELETE(on_delete)]
    fault.kept += [real_open, real_delete, *callbacks]
    vfs.open, vfs.delete = (cast(callback, c_void_p).value for callback in callbacks)

    real_write, real_file_open = os.write, os.open

    def is_file(number):
        return stat.S_ISREG(os.fstat(number).st_mode)

    def on_python_write(number, data):
        if not is_file(number):
            return real_write(number, data)
        if fault.reach():
            raise OSError(errno.ENOSPC, "No space left on device")
        if fault.is_half():
            real_write(number, bytes(data)[: len(data) // 2])
            os._exit(KILLED)
        return real_write(number, data)

    def on_python_open(path, flags, *arguments, **options):
        is_new = bool(flags & os.O_CREAT) and not Path(path).exists()
        if is_new and fault.reach():
            raise OSError(errno.ENOSPC, "No space left on device")
        number = real_file_open(path, flags, *arguments, **options)
        if is_new:
            fault.data.pop(os.fstat(number).st_ino, None)
        return number

    os.write, os.open = on_python_write, on_python_open

    def guard(name):
        real = getattr(os, name)

        def guarded(*arguments, **options):
            if fault.reach() and name in ("mkdir", "link"):
                raise OSError(errno.ENOSPC, "No space left on device")
            done = real(*arguments, **options)
            if name == "fsync":
                path = Path(f"/proc/self/fd/{arguments[0]}").readlink()
                (fault.sync_file if is_file(arguments[0]) else fault.sync_folder)(path)
            return done

        setattr(os, name, guarded)

    for name in ("rename", "replace"):
        setattr(os, name, _follow(fault, getattr(os, name)))
    for name in ("mkdir", "link", "unlink", "rmdir", "fsync", "ftruncate", "pwrite"):
        guard(name)


def _follow(fault, move):
    """Let what is known of a folder go with it when it is renamed: its entries are its own, its name its parent's."""

    def moved(source, target, **options):
        move(source, target, **options)
        if Path(source) in fault.names:
            fault.names[Path(target)] = fault.names.pop(Path(source))

    return moved


def run_with(fault, work):
    """Run ``work(acknowledge)`` in a child with this fault; returns how it ended, and what it had acknowledged.

    ``work`` returns what the parent is told besides: how many steps it took is the last line.
    """
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of threads elsewhere in the test run
        child = os.fork()
    if child == 0:
        code = 70
        try:
            os.close(reading)
            install(fault)
            try:
                work(lambda: os.write(writing, b"+"))
                code = 0
            except Exception as error:
                os.write(writing, f"[{type(error).__name__}: {error}]".encode())
                code = 1
            os.write(writing, f" {fault.steps}".encode())
        finally:
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        told = pipe.read().decode()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return code, told
