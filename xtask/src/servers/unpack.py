"""unpack.py ARCHIVES INSIDE INTO: takes the files below the folder INSIDE out of the one archive in the folder ARCHIVES."""

import pathlib
import shutil
import sys
import tarfile
import zipfile


def files(archive):
    """The names of the files in an archive, each with what opens it."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as opened:
            for name in opened.namelist():
                if not name.endswith("/"):
                    yield name, lambda: opened.open(name)
    else:
        with tarfile.open(archive) as opened:
            for member in opened:
                if member.isfile():
                    yield member.name, lambda: opened.extractfile(member)


def main(archives, inside, into):
    [archive] = pathlib.Path(archives).iterdir()
    for name, open_file in files(archive):
        rest = name.removeprefix(inside + "/")
        if rest == name or ".." in pathlib.PurePosixPath(rest).parts:
            continue
        to = pathlib.Path(into, rest)
        to.parent.mkdir(parents=True, exist_ok=True)
        with open_file() as source, open(to, "wb") as out:
            shutil.copyfileobj(source, out)


main(*sys.argv[1:])
