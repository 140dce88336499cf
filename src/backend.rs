//! The devices that tensors are on. Burn chooses a device at run time, and so does everything here below the entry of a run:
//! the type parameter of `run::<Wgpu>` names a backend, whose constants [`AnyBackend`] hands on as values.

#[cfg(feature = "wgpu")]
use std::sync::OnceLock;

use burn::tensor::{DType, Device, Tensor, TensorData};
use ndarray::Array2;
use thiserror::Error;

/// The choice of CPU or GPU as a type parameter: one zero-sized type per Burn device. [`AnyBackend`] is the same choice as a
/// value.
pub trait Backend {
    /// The value of `--backend`.
    const NAME: &'static str;
    /// Whether several clients may run in parallel threads, as on a CPU. A GPU is used from one thread, and gets its
    /// work in large pieces.
    const PARALLEL_CLIENTS: bool;
    /// Whether 64-bit floats work on every device of this backend. A driver's own claim is not reliable.
    const DOUBLE: bool;

    /// Opens the device.
    ///
    /// # Errors
    /// There is no device, or its driver fails; never a panic.
    fn open() -> Result<Device, BackendError>;
}

/// A backend cannot be used.
#[derive(Clone, Debug, Error)]
pub enum BackendError {
    /// The backend exists, but this program was built without it.
    #[error(
        "backend \"{name}\" is not compiled in; build with `cargo build --release --features {name}`, or choose one of {available}"
    )]
    NotCompiled {
        /// The value of `--backend`.
        name: String,
        /// The names of the backends that are compiled in.
        available: String,
    },
    /// There is no backend of this name.
    #[error("backend \"{name}\" is unknown; choose one of {available}")]
    Unknown {
        /// The value of `--backend`.
        name: String,
        /// The names of the backends that are compiled in.
        available: String,
    },
    /// The backend finds no device on this machine.
    #[error("backend \"{name}\" finds no device on this machine: {reason}; `fedstein backends` lists what opens")]
    NoDevice {
        /// The value of `--backend`.
        name: &'static str,
        /// The driver's message.
        reason: String,
    },
    /// The device cannot compute in this precision.
    #[error("backend \"{name}\" cannot compute in {precision}; use precision = \"f32\", or backend flex")]
    NoPrecision {
        /// The value of `--backend`.
        name: &'static str,
        /// The precision.
        precision: &'static str,
    },
}

/// The default backend: the CPU, in pure Rust, with SIMD and all cores. It names the device of `burn::backend::Flex`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Flex;

/// The older CPU backend, on the `ndarray` crate.
#[cfg(feature = "ndarray")]
#[derive(Clone, Copy, Debug, Default)]
pub struct NdArray;

/// GPUs through Vulkan, Metal or DirectX 12.
#[cfg(feature = "wgpu")]
#[derive(Clone, Copy, Debug, Default)]
pub struct Wgpu;

/// NVIDIA GPUs. Building it downloads LLVM.
#[cfg(feature = "cuda")]
#[derive(Clone, Copy, Debug, Default)]
pub struct Cuda;

impl Backend for Flex {
    const NAME: &'static str = "flex";
    const PARALLEL_CLIENTS: bool = true;
    const DOUBLE: bool = true;

    fn open() -> Result<Device, BackendError> {
        Ok(Device::flex())
    }
}

#[cfg(feature = "ndarray")]
impl Backend for NdArray {
    const NAME: &'static str = "ndarray";
    const PARALLEL_CLIENTS: bool = true;
    const DOUBLE: bool = true;

    #[allow(deprecated)] // Burn deprecates the constructor in favour of flex; this is the one place that names it.
    fn open() -> Result<Device, BackendError> {
        Ok(Device::ndarray())
    }
}

#[cfg(feature = "wgpu")]
impl Backend for Wgpu {
    const NAME: &'static str = "wgpu";
    const PARALLEL_CLIENTS: bool = false;
    const DOUBLE: bool = false;

    fn open() -> Result<Device, BackendError> {
        // Burn refuses to initialise a device twice: the first answer is kept.
        static OPENED: OnceLock<Result<Device, BackendError>> = OnceLock::new();
        let open = || {
            let device = Device::wgpu_options().init();
            device.map_err(|error| BackendError::NoDevice { name: Self::NAME, reason: error.to_string() })
        };
        OPENED.get_or_init(open).clone()
    }
}

#[cfg(feature = "cuda")]
impl Backend for Cuda {
    const NAME: &'static str = "cuda";
    const PARALLEL_CLIENTS: bool = false;
    const DOUBLE: bool = false;

    fn open() -> Result<Device, BackendError> {
        let open = || Device::cuda(burn::tensor::DeviceIndex::Default);
        std::panic::catch_unwind(open)
            .map_err(|_| BackendError::NoDevice { name: Self::NAME, reason: "no CUDA device or driver".into() })
    }
}

/// Every value of `--backend` and of the key `backend`, compiled in or not.
pub const KNOWN: [&str; 4] = ["flex", "ndarray", "wgpu", "cuda"];

/// The backends that are compiled in.
const COMPILED: &[AnyBackend] = &[
    AnyBackend::of::<Flex>(),
    #[cfg(feature = "ndarray")]
    AnyBackend::of::<NdArray>(),
    #[cfg(feature = "wgpu")]
    AnyBackend::of::<Wgpu>(),
    #[cfg(feature = "cuda")]
    AnyBackend::of::<Cuda>(),
];

/// A backend that is compiled in, as a value: `AnyBackend::named("wgpu")?` is `AnyBackend::of::<Wgpu>()`.
#[derive(Clone, Copy, Debug)]
pub struct AnyBackend {
    name: &'static str,
    parallel_clients: bool,
    double: bool,
    open: fn() -> Result<Device, BackendError>,
}

impl AnyBackend {
    /// The backend of this type.
    pub const fn of<B: Backend>() -> Self {
        Self { name: B::NAME, parallel_clients: B::PARALLEL_CLIENTS, double: B::DOUBLE, open: B::open }
    }

    /// The backend of this name.
    ///
    /// # Errors
    /// The name is unknown, or its backend is not compiled in.
    pub fn named(name: &str) -> Result<Self, BackendError> {
        COMPILED.iter().find(|backend| backend.name == name).copied().ok_or_else(|| refusal(name))
    }

    /// The value of `--backend`.
    pub fn name(self) -> &'static str {
        self.name
    }

    /// Whether several clients may run in parallel threads; see [`Backend::PARALLEL_CLIENTS`].
    pub fn has_parallel_clients(self) -> bool {
        self.parallel_clients
    }

    /// Opens the device.
    ///
    /// # Errors
    /// There is no device, or it cannot compute in this precision.
    pub fn open(self, precision: Precision) -> Result<Session, BackendError> {
        let device = (self.open)()?;
        let dtype = match precision {
            Precision::F32 => DType::F32,
            Precision::F64 if self.double => DType::F64,
            Precision::F64 => {
                return Err(BackendError::NoPrecision { name: self.name, precision: precision.word() });
            }
        };
        Ok(Session { device, dtype, backend: self })
    }
}

fn refusal(name: &str) -> BackendError {
    let available = COMPILED.iter().map(|backend| backend.name).collect::<Vec<_>>().join(", ");
    let name = name.to_owned();
    if KNOWN.contains(&name.as_str()) {
        BackendError::NotCompiled { name, available }
    } else {
        BackendError::Unknown { name, available }
    }
}

fedstein_schema::words! {
    /// Precision of particles and scores.
    #[derive(Default)]
    pub enum Precision {
        /// 32-bit floats.
        #[default]
        F32 = "f32",
        /// 64-bit floats, on CPU backends only.
        F64 = "f64",
    }
}

/// An open device, its backend, and the precision of all tensors on it.
#[derive(Clone, Debug)]
pub struct Session {
    device: Device,
    dtype: DType,
    backend: AnyBackend,
}

impl Session {
    /// Opens B's device.
    ///
    /// # Errors
    /// There is no device, or it cannot compute in this precision.
    pub fn open<B: Backend>(precision: Precision) -> Result<Self, BackendError> {
        AnyBackend::of::<B>().open(precision)
    }

    /// Opens the device of the backend of this name.
    ///
    /// # Errors
    /// The name is unknown, its backend is not compiled in, there is no device, or it cannot compute in this precision.
    pub fn named(name: &str, precision: Precision) -> Result<Self, BackendError> {
        AnyBackend::named(name)?.open(precision)
    }

    /// The backend.
    pub fn backend(&self) -> AnyBackend {
        self.backend
    }

    /// The device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// A row-major host matrix of f32 on the device, `[rows, columns]` = `shape`.
    ///
    /// # Panics
    /// There are not rows · columns values.
    #[track_caller]
    pub fn upload(&self, values: Vec<f32>, shape: [usize; 2]) -> Tensor<2> {
        let found = values.len();
        assert!(
            Some(found) == shape[0].checked_mul(shape[1]),
            "a matrix of the shape {shape:?} cannot hold {found} numbers"
        );
        Tensor::from_data(TensorData::new(values, shape), (&self.device, self.dtype))
    }

    /// A host matrix `[rows, columns]` of f64 on the device, in the precision of the session and of the same shape.
    pub fn matrix(&self, values: &Array2<f64>) -> Tensor<2> {
        upload_matrix(values, &self.device, self.dtype)
    }

    /// The name of the hardware as the driver reports it.
    pub fn hardware(&self) -> String {
        self.gpu().unwrap_or_else(|| format!("{} CPU threads", rayon::current_num_threads()))
    }

    #[cfg(any(feature = "wgpu", feature = "cuda"))]
    fn gpu(&self) -> Option<String> {
        self.device.identity().map(|identity| identity.name.clone())
    }

    /// Without a GPU backend Burn's devices have no identity.
    #[cfg(not(any(feature = "wgpu", feature = "cuda")))]
    fn gpu(&self) -> Option<String> {
        None
    }
}

/// Whether tensors on this device are blocks of this process's memory that loops over slices may read.
pub(crate) fn is_flex(device: &Device) -> bool {
    *device == Device::flex()
}

/// Whether this device is the CPU.
pub(crate) fn is_cpu(device: &Device) -> bool {
    #[cfg(feature = "ndarray")]
    if matches!(NdArray::open(), Ok(ndarray) if *device == ndarray) {
        return true;
    }
    is_flex(device)
}

/// A host matrix on a device as a tensor of this element type and the same shape.
pub(crate) fn upload_matrix(values: &Array2<f64>, device: &Device, dtype: DType) -> Tensor<2> {
    let shape = [values.nrows(), values.ncols()];
    let data: Vec<f64> = values.iter().copied().collect();
    Tensor::from_data(TensorData::new(data, shape), (device, dtype))
}
