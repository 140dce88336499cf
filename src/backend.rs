//! The devices that tensors are on. Burn 0.22 chooses a device at run time; fedstein keeps the choice in the types, so
//! that mixing two devices is a type error and not a panic.

use std::fmt::Debug;
use std::marker::PhantomData;
#[cfg(feature = "wgpu")]
use std::sync::OnceLock;

use burn::tensor::{DType, Device, Tensor, TensorData};
use ndarray::Array2;
use thiserror::Error;

/// The choice of CPU or GPU as a type parameter: one zero-sized type per Burn device.
pub trait Backend: Copy + Debug + Default + Send + Sync + 'static {
    /// The value of `--backend`.
    const NAME: &'static str;
    /// Whether several clients may run in parallel threads, as on a CPU. A GPU is used from one thread, and gets its
    /// work in large pieces.
    const PARALLEL_CLIENTS: bool;
    /// Whether 64-bit floats work on every device of this backend. A driver's own claim is not reliable.
    const DOUBLE: bool;
    /// Whether tensors are blocks of this process's memory that loops over slices may read.
    const SLICES: bool = false;

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

/// The default backend: the CPU, in pure Rust, with SIMD and all cores.
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
    const SLICES: bool = true;

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

/// A job that is generic in the backend, for [`dispatch`].
pub trait OnBackend {
    /// The result of the job.
    type Output;
    /// Runs the job on B.
    fn run<B: Backend>(self) -> Self::Output;
}

/// Runs a job on the backend of this name: `dispatch("wgpu", job)` is `job.run::<Wgpu>()`.
///
/// # Errors
/// The name is unknown, or its backend is not compiled in.
pub fn dispatch<J: OnBackend>(name: &str, job: J) -> Result<J::Output, BackendError> {
    match name {
        Flex::NAME => Ok(job.run::<Flex>()),
        #[cfg(feature = "ndarray")]
        NdArray::NAME => Ok(job.run::<NdArray>()),
        #[cfg(feature = "wgpu")]
        Wgpu::NAME => Ok(job.run::<Wgpu>()),
        #[cfg(feature = "cuda")]
        Cuda::NAME => Ok(job.run::<Cuda>()),
        _ => Err(refusal(name)),
    }
}

fn refusal(name: &str) -> BackendError {
    let compiled = |name: &&str| match *name {
        "ndarray" => cfg!(feature = "ndarray"),
        "wgpu" => cfg!(feature = "wgpu"),
        "cuda" => cfg!(feature = "cuda"),
        _ => true,
    };
    let available = KNOWN.iter().filter(|name| compiled(name)).copied().collect::<Vec<_>>().join(", ");
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

/// An open device and the precision of all tensors on it.
#[derive(Clone, Debug)]
pub struct Session<B> {
    device: Device,
    dtype: DType,
    on: PhantomData<B>,
}

impl<B: Backend> Session<B> {
    /// Opens B's device.
    ///
    /// # Errors
    /// There is no device, or it cannot compute in this precision.
    pub fn open(precision: Precision) -> Result<Self, BackendError> {
        let device = B::open()?;
        let dtype = match precision {
            Precision::F32 => DType::F32,
            Precision::F64 => DType::F64,
        };
        if precision == Precision::F64 && !B::DOUBLE {
            return Err(BackendError::NoPrecision { name: B::NAME, precision: precision.word() });
        }
        Ok(Self { device, dtype, on: PhantomData })
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

/// A host matrix on a device as a tensor of this element type and the same shape.
pub(crate) fn upload_matrix(values: &Array2<f64>, device: &Device, dtype: DType) -> Tensor<2> {
    let shape = [values.nrows(), values.ncols()];
    let data: Vec<f64> = values.iter().copied().collect();
    Tensor::from_data(TensorData::new(data, shape), (device, dtype))
}
