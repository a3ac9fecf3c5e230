"""What is left after a power loss: the calls that the shim wrote down, replayed up to one of them, keeping what was synced."""
import hashlib
import pathlib


class File:
    def __init__(self):
        self.size, self.synced = 0, b""


class Folder:
    def __init__(self):
        self.names, self.synced = {}, {}


class Disk:
    """A folder as the system had it (`names`, `size`), and as the disk is sure to have it (`synced`)."""

    def __init__(self, root, store):
        self.root, self.store, self.top = pathlib.Path(root), pathlib.Path(store), Folder()

    def parent(self, path):
        at = self.top
        for part in pathlib.Path(path).relative_to(self.root).parts[:-1]:
            at = at.names.setdefault(part, Folder())
        return at.names, pathlib.Path(path).name

    def find(self, path):
        if pathlib.Path(path) == self.root:
            return self.top
        names, name = self.parent(path)
        return names.get(name)

    def apply(self, number, call, path, more):
        if " (deleted)" in path or call in ("failed", "open", "close", "mmap", "syncfs"):
            return
        names, name = self.parent(path) if pathlib.Path(path) != self.root else ({}, "")
        if call in ("create", "creat"):
            names.setdefault(name, File())
        elif call == "mkdir":
            names.setdefault(name, Folder())
        elif call == "remove":
            names.pop(name, None)
        elif call in ("rename", "exchange"):
            others, other = self.parent(more)
            if call == "exchange":
                names[name], others[other] = others[other], names[name]
            else:
                others[other] = names.pop(name)
        elif call in ("write", "size"):
            names.setdefault(name, File()).size = int(more)
        elif call == "sync":
            content = self.store / number
            if content.exists():
                file = names.setdefault(name, File())
                file.synced = content.read_bytes()
                file.size = len(file.synced)
            else:
                folder = self.find(path) or names.setdefault(name, Folder())
                folder.synced = dict(folder.names)
        else:
            raise ValueError(call)

    def rebuild(self, to, kept):
        """`kept`: "synced", what was synced alone; "names", all names, with what was synced of their content; "zeros", the same with
        zeros for the rest, as file systems leave them that write sizes before contents."""

        def put(folder, place):
            place.mkdir(parents=True, exist_ok=True)
            for name, node in (folder.synced if kept == "synced" else folder.names).items():
                if isinstance(node, Folder):
                    put(node, place / name)
                else:
                    rest = bytes(max(0, node.size - len(node.synced))) if kept == "zeros" else b""
                    (place / name).write_bytes(node.synced + rest)

        put(self.top, pathlib.Path(to))


def content(folder):
    """A hash of all names in the folder and their bytes."""
    all = [(str(path.relative_to(folder)), path.is_file() and path.read_bytes()) for path in sorted(folder.rglob("*"))]
    return hashlib.sha256(repr(all).encode()).digest()


def read_log(file):
    """(program, number, call, path, more) of every call."""
    return [line.split("\t") for line in pathlib.Path(file).read_text().splitlines()]
