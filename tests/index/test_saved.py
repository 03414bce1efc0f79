"""Saved indexes and vectors: the way there and back, and every damaged file refused."""

import errno
import gc
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import faiss
import numpy as np
import pytest
from numpy.typing import NDArray

from recsys.foundations import FormatError, MissingFileError
from recsys.index import (
    FaissIndex,
    IndexSettings,
    read_index,
    read_vectors,
    write_index,
    write_vectors,
)

SETTINGS = [
    IndexSettings(kind="flat"),
    IndexSettings(kind="hnsw", m=8),
    IndexSettings(kind="ivf_flat", num_lists=8),
    IndexSettings(kind="ivf_pq", num_lists=8, num_codes=2, code_bits=4),
    IndexSettings(kind="hnsw_sq8", m=8),
    IndexSettings(kind="ivf_sq8", num_lists=8),
    IndexSettings(kind="ivf_fp16", num_lists=8),
    IndexSettings(kind="ivf_pq_fast", num_lists=8, num_codes=4),
]


def make_vectors(count: int = 800, *, seed: int = 0) -> NDArray[np.float32]:
    return np.random.default_rng(seed).standard_normal((count, 8), dtype=np.float32)


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda settings: settings.kind)
def test_a_read_index_gives_the_same_hits(settings: IndexSettings, tmp_path: Path) -> None:
    index = FaissIndex.build(make_vectors(), settings)
    write_vectors(tmp_path / "vectors.npy", make_vectors())
    write_index(tmp_path / "index.faiss", index)
    again = read_index(tmp_path / "index.faiss", read_vectors(tmp_path / "vectors.npy"), settings)
    queries = make_vectors(40, seed=1)
    assert again.kind == index.kind
    assert np.array_equal(
        again.search(queries, 10).candidate_rows, index.search(queries, 10).candidate_rows
    )
    assert sorted(file.name for file in tmp_path.iterdir()) == ["index.faiss", "vectors.npy"]


TRUNCATED = """
import sys
from pathlib import Path
from recsys.foundations import FormatError
from recsys.index import IndexSettings, read_index, read_vectors

folder, kind, sizes = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
settings = eval(kind, {"IndexSettings": IndexSettings})
vectors, whole = read_vectors(folder / "vectors.npy"), (folder / "index.faiss").read_bytes()
for size in eval(sizes):
    path = folder / "cut" / "index.faiss"
    path.write_bytes((whole + bytes(9))[:size])
    try:
        read_index(path, vectors, settings)
    except FormatError as error:
        assert f"{path} is damaged" in str(error), error
    else:
        raise SystemExit(f"{kind} of {size} bytes of {len(whole)} was read")
    path.unlink()
print("refused")
"""


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda settings: settings.kind)
def test_an_index_truncated_anywhere_is_refused_and_ends_no_process(
    settings: IndexSettings, tmp_path: Path
) -> None:
    write_vectors(tmp_path / "vectors.npy", make_vectors())
    write_index(tmp_path / "index.faiss", FaissIndex.build(make_vectors(), settings))
    (tmp_path / "cut").mkdir()
    size = (tmp_path / "index.faiss").stat().st_size
    sizes = {*range(120), *range(size - 40, size), size + 1, size + 9}
    for page in range(0, size, 4096):  # where a mapped file ends, a read beyond it is a SIGBUS
        sizes |= {page, page + 1, page + 5, page + 2048, page + 4093}
    chosen = sorted(sizes - {size})
    done = subprocess.run(
        [sys.executable, "-c", TRUNCATED, tmp_path, repr(settings), repr(chosen)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "refused\n"), done.stderr


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda settings: settings.kind)
def test_a_read_index_leaves_its_bytes_in_the_files(
    settings: IndexSettings, tmp_path: Path
) -> None:
    write_vectors(tmp_path / "vectors.npy", make_vectors())
    write_index(tmp_path / "index.faiss", FaissIndex.build(make_vectors(), settings))
    vectors = read_vectors(tmp_path / "vectors.npy")
    inner: Any = read_index(tmp_path / "index.faiss", vectors, settings).inner
    places = {}
    for line in Path("/proc/self/maps").read_text().splitlines():
        if line.endswith((str(tmp_path / "index.faiss"), str(tmp_path / "vectors.npy"))):
            start, end = (int(one, 16) for one in line.split()[0].split("-"))
            places[Path(line.split()[-1]).name] = range(start, end)

    def where(address: object) -> str | None:
        found = [name for name, place in places.items() if int(address) in place]  # type: ignore[call-overload]
        return found[0] if found else None

    if settings.kind == "flat":
        assert where(inner.codes.data()) == "vectors.npy"
    elif settings.kind.startswith("hnsw"):
        whole = settings.kind == "hnsw"
        storage: Any = faiss.downcast_index(inner.storage)
        assert where(storage.codes.data()) == ("vectors.npy" if whole else "index.faiss")
        assert where(inner.hnsw.neighbors.data()) == "index.faiss"
    else:  # the codes of ivf_pq_fast are copied, into an order of their own
        wanted = None if settings.kind == "ivf_pq_fast" else "index.faiss"
        for number in range(8):
            assert where(inner.invlists.get_codes(number)) == wanted


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda settings: settings.kind)
def test_an_index_whose_file_is_replaced_or_deleted_stays_as_it_was(
    settings: IndexSettings, tmp_path: Path
) -> None:
    path, queries = tmp_path / "index.faiss", make_vectors(5, seed=1)
    write_vectors(tmp_path / "vectors.npy", make_vectors())
    write_index(path, FaissIndex.build(make_vectors(), settings))
    index = read_index(path, read_vectors(tmp_path / "vectors.npy"), settings)
    before = index.search(queries, 10)
    write_vectors(tmp_path / "vectors.npy", make_vectors(2000, seed=2))
    write_index(path, FaissIndex.build(make_vectors(2000, seed=2), settings))
    for _ in range(2):
        after = index.search(queries, 10)
        assert np.array_equal(after.candidate_rows, before.candidate_rows)
        assert np.array_equal(after.scores, before.scores)
        path.unlink(missing_ok=True)


def test_indexes_over_whole_vectors_keep_no_copy_of_them() -> None:
    vectors = make_vectors()
    storage: Any
    flat = FaissIndex.build(vectors, IndexSettings(kind="flat")).inner
    graph = FaissIndex.build(vectors, IndexSettings(kind="hnsw", m=8)).inner
    for storage in (flat, faiss.downcast_index(graph.storage)):
        assert int(storage.codes.data()) == vectors.ctypes.data
    every_other = make_vectors()[::2]  # not in one piece: FAISS must have its own
    copied = FaissIndex.build(every_other, IndexSettings(kind="flat"))
    assert np.array_equal(copied.inner.reconstruct_n(0, 400), every_other)


def test_vectors_stay_alive_as_long_as_an_index_that_reads_them() -> None:
    wanted = make_vectors()
    for kind in ("flat", "hnsw"):
        inner = FaissIndex.build(make_vectors(), IndexSettings(kind=kind)).inner
        gc.collect()
        assert np.array_equal(inner.reconstruct_n(0, 800), wanted)


def test_a_length_beyond_the_file_is_refused_without_the_memory(tmp_path: Path) -> None:
    path = tmp_path / "index.faiss"
    write_index(path, FaissIndex.build(make_vectors(), SETTINGS[0]))
    content = bytearray(path.read_bytes())
    content[37:45] = struct.pack("<q", 1 << 38)  # the length of the vectors' bytes
    path.write_bytes(bytes(content))
    with pytest.raises(FormatError, match="is damaged"):
        read_index(path, make_vectors(), SETTINGS[0])


def test_an_index_of_other_vectors_or_another_metric_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "index.faiss"
    write_index(path, FaissIndex.build(make_vectors(), SETTINGS[0]))
    with pytest.raises(FormatError, match="holds 800 vectors of width 8, the item vectors are 799"):
        read_index(path, make_vectors(799), SETTINGS[0])
    by_distance = faiss.IndexFlatL2(8)
    by_distance.add(make_vectors())
    faiss.write_index(by_distance, str(path))
    with pytest.raises(FormatError, match=r"damaged: it begins with b'IxF2'"):
        read_index(path, make_vectors(), SETTINGS[0])
    graph = faiss.IndexHNSWFlat(8, 8, faiss.METRIC_L2)
    graph.add(make_vectors())
    faiss.write_index(graph, str(path))
    with pytest.raises(FormatError, match="another metric than the inner product"):
        read_index(path, make_vectors(), SETTINGS[1])


def test_damaged_vectors_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "vectors.npy"
    write_vectors(path, make_vectors())
    whole = path.read_bytes()
    for content in (b"", whole[:50], whole[:-1], b"x" * 500):
        path.write_bytes(content)
        with pytest.raises(FormatError, match=r"vectors\.npy is damaged"):
            read_vectors(path)
    for other in (np.zeros(3, np.float32), np.zeros((3, 3)), np.array([["a"]], object)):
        np.save(path, other, allow_pickle=True)
        with pytest.raises(FormatError, match=r"vectors\.npy is damaged"):
            read_vectors(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(MissingFileError, match=r"vectors\.npy does not exist"):
        read_vectors(tmp_path / "vectors.npy")
    with pytest.raises(MissingFileError, match=r"index\.faiss does not exist"):
        read_index(tmp_path / "index.faiss", make_vectors(), SETTINGS[0])


_WHERE_ROOM_ENDS = """
import resource, sys
from pathlib import Path
import numpy as np
from recsys.index import FaissIndex, IndexSettings, write_index

folder = Path(sys.argv[1])
vectors = np.random.default_rng(0).normal(size=(300, 8)).astype(np.float32)
index = FaissIndex.build(vectors, IndexSettings(kind=sys.argv[2], num_lists=4, m=4))
write_index(folder / "whole", index)
size = (folder / "whole").stat().st_size
for room in (size - 1, size - 600, size // 2, 10):
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, resource.RLIM_INFINITY))
    try:
        write_index(folder / "index.faiss", index)
    except OSError as error:
        print(error.errno, error.strerror.partition(str(folder))[2])
    else:
        print("written")
"""


@pytest.mark.parametrize("kind", ["flat", "hnsw", "ivf_flat"])
def test_an_index_that_finds_no_room_is_refused_wherever_it_ends(kind: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _WHERE_ROOM_ENDS, str(tmp_path), kind],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    refusal = f"{errno.EFBIG} /index.faiss cannot be written (File too large)"
    assert done.stdout.splitlines() == [refusal] * 4, done.stderr
    assert [one.name for one in tmp_path.iterdir()] == ["whole"]
    assert (
        read_index(
            tmp_path / "whole",
            np.random.default_rng(0).normal(size=(300, 8)).astype(np.float32),
            IndexSettings(kind=kind, num_lists=4, m=4),
        ).num_candidates
        == 300
    )
