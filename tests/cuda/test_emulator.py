"""The emulated GPU finds what a real one would let pass, and computes what a real one computes."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import numpy as np
import pytest

from tests.cuda import emulator

Launch = Callable[..., list[np.ndarray]]


class LaunchFailed(Exception):
    """The device reported an error."""


@pytest.fixture
def launch() -> Launch:
    """Runs a kernel of CUDA C on arrays and returns the arrays afterwards."""
    if emulator.missing():
        pytest.skip(emulator.missing())
    device = emulator.install()
    device.reset()
    driver = ctypes.CDLL("libcuda.so.1")
    runtime = ctypes.CDLL("libcudart.so.13")

    def run(
        source: str, *arrays: np.ndarray, threads: int = 32, blocks: int = 1, shared: int = 0,
        on_host: bool = False,
    ) -> list[np.ndarray]:  # fmt: skip
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        code = emulator.compile_cuda(source)
        assert driver.cuModuleLoadData(ctypes.byref(module), code) == 0, device.message
        assert driver.cuModuleGetFunction(ctypes.byref(function), module, b"kernel") == 0
        places = [_address(a) if on_host else _to_device(runtime, a) for a in arrays]
        pointers = (ctypes.c_void_p * len(places))(*(ctypes.addressof(p) for p in places))
        sizes = [ctypes.c_uint(n) for n in (blocks, 1, 1, threads, 1, 1, shared)]
        status = driver.cuLaunchKernel(function, *sizes, None, pointers, None)
        results = [array.copy() for array in arrays]
        if not status:
            for result, place in zip(results, places):
                runtime.cudaMemcpy(_address(result), place, ctypes.c_size_t(result.nbytes), 2)
        for place in () if on_host else places:
            runtime.cudaFree(place)
        if status:
            raise LaunchFailed(device.message)
        return results

    return run


def _address(array: np.ndarray) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def _to_device(runtime: ctypes.CDLL, array: np.ndarray) -> ctypes.c_void_p:
    place = ctypes.c_void_p()
    assert runtime.cudaMalloc(ctypes.byref(place), ctypes.c_size_t(array.nbytes)) == 0
    runtime.cudaMemcpy(place, _address(array), ctypes.c_size_t(array.nbytes), 1)
    return place


def _kernel(body: str, parameters: str = "float* x") -> str:
    return f'extern "C" __global__ void kernel({parameters}) {{ int i = threadIdx.x; {body} }}'


def _floats(count: int) -> np.ndarray:
    return np.arange(count, dtype=np.float32)


def test_threads_exchange_through_shared_memory(launch: Launch) -> None:
    body = "__shared__ float s[64]; s[i] = x[i]; __syncthreads(); x[i] = s[63 - i];"
    (x,) = launch(_kernel(body), _floats(64), threads=64)
    np.testing.assert_array_equal(x, _floats(64)[::-1])


def test_lanes_exchange(launch: Launch) -> None:
    body = "for (int d = 16; d; d /= 2) x[i] += __shfl_xor_sync(~0u, x[i], d);"
    (x,) = launch(_kernel(body), _floats(32))
    np.testing.assert_array_equal(x, np.full(32, 31 * 16, np.float32))


def test_half_precision_rounds_as_numpy_does(launch: Launch) -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.normal(0, 300, 256).astype(np.float16) for _ in range(2))
    body = "y[i] = x[i] * y[i] + x[i];"
    _, y = launch(_kernel(body, "half* x, half* y"), a, b, threads=256)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(y, a * b + a)


MMA = """
extern "C" __global__ void kernel(half* a, half* b, float* c) {
  int lane = threadIdx.x, g = lane / 4, t = lane % 4;
  unsigned ra[4], rb[2]; float rc[4];
  for (int i = 0; i < 4; ++i)
    ra[i] = *(unsigned*)(a + (g + 8 * (i % 2)) * 16 + 2 * t + 8 * (i / 2));
  for (int i = 0; i < 2; ++i) rb[i] = *(unsigned*)(b + g * 16 + 2 * t + 8 * i);
  for (int i = 0; i < 4; ++i) rc[i] = c[(g + 8 * (i / 2)) * 8 + 2 * t + i % 2];
  __asm__ __volatile__(
    "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
    "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\\n"
    : "+f"(rc[0]), "+f"(rc[1]), "+f"(rc[2]), "+f"(rc[3])
    : "r"(ra[0]), "r"(ra[1]), "r"(ra[2]), "r"(ra[3]), "r"(rb[0]), "r"(rb[1]));
  for (int i = 0; i < 4; ++i) c[(g + 8 * (i / 2)) * 8 + 2 * t + i % 2] = rc[i];
}
"""


def test_tensor_cores_multiply(launch: Launch) -> None:
    rng = np.random.default_rng(1)
    a, b = (rng.normal(size=s).astype(np.float16) for s in ((16, 16), (8, 16)))
    c = rng.normal(size=(16, 8)).astype(np.float32)
    expected = a.astype(float) @ b.T.astype(float) + c
    np.testing.assert_allclose(launch(MMA, a, b, c)[2], expected, rtol=1e-5, atol=1e-5)


COPY = """
extern "C" __global__ void kernel(float* x) {{
  __shared__ __align__(16) float s[128];
  unsigned to = (unsigned)__cvta_generic_to_shared(s + 4 * threadIdx.x);
  __asm__ __volatile__("cp.async.cg.shared.global [%0], [%1], 16;"
                       :: "r"(to), "l"(x + 4 * threadIdx.x));
  __asm__ __volatile__("cp.async.commit_group;");
  {wait}
  __syncthreads();
  for (int j = 0; j < 4; ++j) x[4 * threadIdx.x + j] = s[127 - 4 * threadIdx.x - j];
}}
"""


@pytest.mark.parametrize("waits", [True, False])
def test_asynchronous_copies_arrive_when_they_are_waited_for(launch: Launch, waits: bool) -> None:
    wait = '__asm__ __volatile__("cp.async.wait_group 0;");' if waits else ""
    (x,) = launch(COPY.format(wait=wait), _floats(128))
    assert np.array_equal(x, _floats(128)[::-1]) == waits


@pytest.mark.parametrize(
    ("body", "threads", "message"),
    [
        ("x[i + 1] = 0;", 30, "behind the end of an allocation of 120 bytes"),
        ("x[i] = x[i + 1024];", 64, "of an allocation of 256 bytes"),
        ("__shared__ float s[32]; s[i] = 0; x[i] = s[i];", 64, "outside of an array"),
        ("*(float4*)(x + 1) = make_float4(0, 0, 0, 0);", 1, "misaligned"),
        ("if (i < 32) __syncthreads(); else __syncthreads();", 64, "different __syncthreads"),
        ("if (i) __shfl_xor_sync(~0u, 1, 1); else __syncthreads();", 32, "wait for each other"),
        (
            "volatile char a[1 << 20]; a[i] = 0; x[i] = a[i];",
            64,
            "variables need more than 128 KiB",
        ),
        ('asm("st.shared.f32 [%0], %1;" :: "r"(1 << 20), "f"(x[i]));', 1, "outside of its shared"),
        ("x[i] = __cvta_generic_to_shared(x);", 1, "other memory for shared memory"),
        (
            "if (i < 16) __shfl_xor_sync(~0u, 1, 1); else __shfl_xor_sync(~0u, 1, 2);",
            32,
            "lanes of a warp meet at different instructions",
        ),
    ],
)
def test_errors_name_the_thread(launch: Launch, body: str, threads: int, message: str) -> None:
    with pytest.raises(LaunchFailed, match=message):
        launch(_kernel(body.replace("; else", ";\n else")), _floats(threads), threads=threads)


def test_memory_of_the_host_is_out_of_reach(launch: Launch) -> None:
    with pytest.raises(LaunchFailed, match="argument 0 is an address of the host"):
        launch(_kernel("x[i] = 0;"), _floats(32), on_host=True)


def test_threads_that_have_ended_are_not_waited_for(launch: Launch) -> None:
    (x,) = launch(
        _kernel("if (i < 32) return; __syncthreads(); x[i] = 0;"), _floats(64), threads=64
    )
    np.testing.assert_array_equal(x[:32], _floats(32))
    np.testing.assert_array_equal(x[32:], 0)


def test_a_missing_barrier_is_a_race(launch: Launch) -> None:
    device = emulator.install()
    device.set(races=1)
    body = "__shared__ float s[64]; s[i] = x[i]; {} float y = s[63 - i]; x[i] = y;"
    launch(_kernel(body.format("__syncthreads();")), _floats(64), threads=64)
    with pytest.raises(LaunchFailed, match="order of threads"):
        launch(_kernel(body.format("")), _floats(64), threads=64)


@pytest.mark.parametrize(
    ("body", "size", "message"),
    [
        ("", {"threads": 1025}, "a block of 1025 x 1 x 1 threads cannot be launched"),
        ("", {"blocks": 1 << 31}, "a grid of 2147483648 x 1 x 1 blocks cannot be launched"),
        ("", {"shared": 49 << 10}, "may not use 50176 bytes of shared memory"),
        ("__shared__ float s[4096]; s[i] = 0; x[i] = s[i];", {"shared": 40 << 10}, "the 48 KiB"),
    ],
)
def test_launches_that_a_device_refuses(
    launch: Launch, body: str, size: dict[str, int], message: str
) -> None:
    with pytest.raises(LaunchFailed, match=message):
        launch(_kernel(body), _floats(32), **size)


_PRODUCT = f"""
extern "C" __global__ void kernel(half* x) {{{{
  extern __shared__ __align__(1024) half s[];
  int at = (int)__cvta_generic_to_shared(s), to = at + 16 * threadIdx.x;
  float d[4] = {{{{}}}};
  long long m = 1LL << 62 | 64LL << 32 | (at & 0x3FFFF) >> 4;
  asm("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(to), "l"(x + 8 * threadIdx.x));
  asm("cp.async.wait_all;");
  {{fence}}
  __syncthreads();
  asm("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 "
      "{{{{%0, %1, %2, %3}}}}, %4, %4, 1, 1, 1, 0, 0;"
      : {", ".join(f'"+f"(d[{i}])' for i in range(4))} : "l"(m));
  asm("wgmma.commit_group.sync.aligned;");
  {{wait}}
  __syncthreads();
  asm("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(to), "l"(x + 8 * threadIdx.x));
  asm("cp.async.wait_all;");
  x[threadIdx.x] = d[0];
}}}}
"""


@pytest.mark.parametrize(
    ("fence", "wait", "message"),
    [
        ("fence.proxy.async.shared::cta", "wgmma.wait_group.sync.aligned 0", ""),
        ("fence.acq_rel.cta", "wgmma.wait_group.sync.aligned 0", "without fence.proxy.async"),
        ("fence.proxy.async", "wgmma.wait_group.sync.aligned 1", "overwrites what a wgmma"),
    ],
)
def test_products_of_warp_groups_read_another_way(
    launch: Launch, fence: str, wait: str, message: str
) -> None:
    source = _PRODUCT.format(fence=f'asm("{fence};");', wait=f'asm("{wait};");')
    x = (np.arange(64 * 64) % 7).astype(np.float16)
    if message:
        with pytest.raises(LaunchFailed, match=message):
            launch(source, x, threads=128, shared=8192)
        return
    (found,) = launch(source, x, threads=128, shared=8192)
    row, step = np.indices((8, 16))
    matrix = x.reshape(64, 8, 8)[row, step // 8 ^ row, step % 8].astype(np.float32)
    np.testing.assert_array_equal(found[:32].reshape(8, 4), (matrix @ matrix.T)[:, ::2])


def test_events_and_streams_that_are_not_ready() -> None:
    if emulator.missing():
        pytest.skip(emulator.missing())
    device = emulator.install()
    device.reset()
    runtime, events = ctypes.CDLL("libcudart.so.13"), [ctypes.c_void_p() for _ in range(2)]
    for event in events:
        assert runtime.cudaEventCreate(ctypes.byref(event)) == 0
    span = ctypes.c_float()
    assert runtime.cudaEventElapsedTime(ctypes.byref(span), *events) == 400, "nobody recorded them"
    assert [runtime.cudaEventRecord(event, None) for event in events] == [0, 0]
    assert runtime.cudaEventElapsedTime(ctypes.byref(span), *events) == 0
    assert runtime.cudaGetLastError() == 400


def test_unknown_instructions_are_refused() -> None:
    with pytest.raises(Exception, match="tcgen05"):
        emulator.compile_cuda(_kernel('__asm__ __volatile__("tcgen05.fence;");'))


def test_memory_is_limited_and_counted(launch: Launch) -> None:
    device = emulator.install()
    before = device.get("used")
    device.set(memory=before + 1024)
    runtime, place = ctypes.CDLL("libcudart.so.13"), ctypes.c_void_p()
    assert runtime.cudaMalloc(ctypes.byref(place), ctypes.c_size_t(2048)) == 2
    assert runtime.cudaMalloc(ctypes.byref(place), ctypes.c_size_t(512)) == 0
    assert device.get("used") == before + 512
    runtime.cudaFree(place)
    with device.failing("cudaMalloc", "out of memory", after=1):
        codes = [runtime.cudaMalloc(ctypes.byref(place), ctypes.c_size_t(16)) for _ in range(2)]
        runtime.cudaFree(place)
    assert codes == [0, 2]
    assert device.get("used") == before
