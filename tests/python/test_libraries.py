"""pandas, Dask, Zarr, xarray and pyarrow on memefs:// URLs. Each writes, another reads."""

import os

import numpy
import pytest


@pytest.fixture
def url(client, root):
    return f"memefs://{client.name}{root}"


@pytest.fixture
def numbers():
    return numpy.random.default_rng(35).normal(size=(400, 300))


def test_pandas(url, mounted):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {"n": range(10_000), "x": numpy.linspace(0, 1, 10_000), "s": [f"line {i}" for i in range(10_000)]}
    )
    frame.to_csv(f"{url}/a.csv", index=False)
    assert pandas.read_csv(mounted / "a.csv").equals(pandas.read_csv(f"{url}/a.csv"))
    frame.to_csv(f"{url}/a.csv.gz", index=False)
    assert mounted.joinpath("a.csv.gz").read_bytes()[:2] == b"\x1f\x8b"
    assert len(pandas.read_csv(f"{url}/a.csv.gz")) == 10_000
    pytest.importorskip("pyarrow")
    frame.to_parquet(f"{url}/new/folder/a.parquet")
    again = pandas.read_parquet(f"{url}/new/folder/a.parquet", columns=["x", "s"])
    assert again.equals(frame[["x", "s"]])
    assert pandas.read_parquet(mounted / "new/folder/a.parquet").equals(frame)
    frame.to_pickle(f"{url}/a.pickle")
    assert pandas.read_pickle(f"{url}/a.pickle").equals(frame)
    frame.to_json(f"{url}/a.json", orient="records", lines=True)
    assert sum(len(part) for part in pandas.read_json(f"{url}/a.json", lines=True, chunksize=3000)) == 10_000


def test_pyarrow(url, client, root, mounted):
    pyarrow = pytest.importorskip("pyarrow")
    import fsspec
    import pyarrow.dataset
    import pyarrow.fs
    import pyarrow.parquet

    table = pyarrow.table({"n": list(range(50_000)), "part": [i % 5 for i in range(50_000)]})
    fs = pyarrow.fs.PyFileSystem(pyarrow.fs.FSSpecHandler(fsspec.filesystem("memefs")))
    pyarrow.dataset.write_dataset(table, f"{root}/set", format="parquet", partitioning=["part"], filesystem=fs)
    assert len(os.listdir(mounted / "set")) == 5
    dataset = pyarrow.dataset.dataset(f"{root}/set", filesystem=fs, partitioning=["part"])
    assert dataset.count_rows() == 50_000
    found = dataset.to_table(filter=pyarrow.dataset.field("part") == 3)
    assert found.num_rows == 10_000 and set(found["n"].to_pylist()) == set(range(3, 50_000, 5))
    with fs.open_input_file(f"{root}/set/3/part-0.parquet") as file:
        assert file.size() == os.path.getsize(mounted / "set/3/part-0.parquet")
        assert pyarrow.parquet.read_metadata(file).num_rows == 10_000
    with fs.open_output_stream(f"{root}/table.arrow") as sink, pyarrow.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    with pyarrow.memory_map(str(mounted / "table.arrow")) as source:
        assert pyarrow.ipc.open_file(source).read_all().equals(table)
    infos = fs.get_file_info(pyarrow.fs.FileSelector(f"{root}/set", recursive=True))
    assert sum(info.is_file for info in infos) == 5


def test_zarr(url, client, root, mounted, numbers):
    zarr = pytest.importorskip("zarr")
    array = zarr.create_array(f"{url}/a.zarr", shape=numbers.shape, chunks=(100, 100), dtype=numbers.dtype)
    array[:] = numbers
    assert (zarr.open_array(str(mounted / "a.zarr"), mode="r")[:] == numbers).all()
    array = zarr.open_array(f"{url}/a.zarr", mode="r+")
    array[150:160, 5] = 7
    assert (zarr.open_array(f"{url}/a.zarr", mode="r")[155, 3:7] == [*numbers[155, 3:5], 7, numbers[155, 6]]).all()
    group = zarr.open_group(f"{url}/g.zarr", mode="w")
    group.create_array("one", shape=(10,), chunks=(5,), dtype="i4", shards=(10,))[:] = range(10)
    group.create_group("below").attrs["unit"] = "m"
    again = zarr.open_group(f"{url}/g.zarr", mode="r")
    assert list(again["one"][2:7]) == [2, 3, 4, 5, 6] and again["below"].attrs["unit"] == "m"
    assert sorted(again.keys()) == ["below", "one"]
    zarr.consolidate_metadata(f"{url}/g.zarr")
    assert sorted(zarr.open_consolidated(f"{url}/g.zarr").keys()) == ["below", "one"]


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_xarray(url, mounted, numbers):
    xarray = pytest.importorskip("xarray")
    pytest.importorskip("zarr")
    data = xarray.Dataset({"t": (("y", "x"), numbers)}, {"x": numpy.arange(300), "y": numpy.arange(400)})
    data.to_zarr(f"{url}/x.zarr")
    with xarray.open_zarr(f"{url}/x.zarr") as again:
        assert again.t.sel(x=17, y=slice(3, 9)).mean().compute().item() == pytest.approx(numbers[3:10, 17].mean())
    with xarray.open_zarr(str(mounted / "x.zarr")) as again:
        assert again.load().equals(data)


def test_dask(url, root, mounted, numbers):
    dask = pytest.importorskip("dask")
    import dask.array
    import dask.bag
    import dask.dataframe

    with dask.config.set(scheduler="threads"):
        dask.bag.from_sequence(range(100), npartitions=4).map(str).to_textfiles(f"{url}/text/*.txt")
        assert sorted(os.listdir(mounted / "text")) == ["0.txt", "1.txt", "2.txt", "3.txt"]
        lines = dask.bag.read_text(f"{url}/text/*.txt")
        assert lines.map(int).sum().compute() == 4950
        mounted.joinpath("b.csv").write_text("n,x\n" + "".join(f"{i},{i / 2}\n" for i in range(20_000)))
        frame = dask.dataframe.read_csv(f"{url}/b.csv", blocksize=50_000)
        assert frame.npartitions > 3 and frame.n.sum().compute() == 199_990_000
        frame.to_parquet(f"{url}/b.parquet")
        assert dask.dataframe.read_parquet(f"{url}/b.parquet", filters=[("n", ">=", 19_990)]).x.count().compute() == 10
        dask.array.from_array(numbers, chunks=(100, 300)).to_zarr(f"{url}/d.zarr")
        assert dask.array.from_zarr(f"{url}/d.zarr").sum().compute() == pytest.approx(numbers.sum())
