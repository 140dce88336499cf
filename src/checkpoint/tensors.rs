//! Saves particles and optimiser states in a [`State`], and restores them on the device, bit for bit.

use std::sync::Arc;

use burn::tensor::{DType, Tensor, TensorData};
use fedstein_models::Layout;

use super::{CheckpointError, State};
use crate::array::{Array, Values};
use crate::backend::Session;
use crate::particles::Particles;
use crate::stein::OptimizerState;

impl State {
    /// Adds a set of particles, `[N, d]`. Waits for the device.
    ///
    /// # Errors
    /// The device fails.
    pub fn with_particles(self, name: &str, particles: &Particles) -> Result<Self, CheckpointError> {
        Ok(self.with_array(name, particles.to_array()?))
    }

    /// The particles of this name, `[N, d]`.
    ///
    /// # Errors
    /// The particles are missing, have another type than the session's, or another layout.
    pub fn particles(&self, name: &str, layout: &Arc<Layout>, session: &Session) -> Result<Particles, CheckpointError> {
        let array = self.typed(name, session)?;
        let particles = Particles::from_array(array, layout, session);
        particles.map_err(|reason| CheckpointError::Content(format!("the state's \"{name}\": {reason}")))
    }

    /// Adds an optimiser's state. Waits for the device.
    ///
    /// # Errors
    /// The device fails.
    pub fn with_optimizer(self, name: &str, optimizer: &OptimizerState) -> Result<Self, CheckpointError> {
        let mut part = Self::default().with_count("steps", optimizer.steps);
        for (of, tensors) in [("first", &optimizer.first), ("second", &optimizer.second)] {
            part = part.with_count(&format!("{of}_blocks"), tensors.len());
            for (block, tensor) in tensors.iter().enumerate() {
                part = part.with_array(&format!("{of}_{block}"), array_of(tensor)?);
            }
        }
        Ok(self.with_part(name, part))
    }

    /// The optimiser state of this name.
    ///
    /// # Errors
    /// The state is missing, or has another type than the session's.
    pub fn optimizer(&self, name: &str, session: &Session) -> Result<OptimizerState, CheckpointError> {
        let part = self.part(name);
        let tensors = |of: &str| -> Result<Vec<Tensor<2>>, CheckpointError> {
            let blocks = 0..part.count(&format!("{of}_blocks"))?;
            blocks.map(|block| tensor_of(part.typed(&format!("{of}_{block}"), session)?, session)).collect()
        };
        Ok(OptimizerState { steps: part.count("steps")?, first: tensors("first")?, second: tensors("second")? })
    }

    /// The array of this name, which must have the session's type: a conversion would change the bits.
    fn typed(&self, name: &str, session: &Session) -> Result<&Array, CheckpointError> {
        let array = self.array(name)?;
        let fits = match array.values {
            Values::F32(_) => session.dtype() == DType::F32,
            Values::F64(_) => session.dtype() == DType::F64,
        };
        if fits {
            return Ok(array);
        }
        Err(CheckpointError::Content(format!("the state's \"{name}\" is not {:?}", session.dtype())))
    }
}

fn array_of(tensor: &Tensor<2>) -> Result<Array, CheckpointError> {
    let shape = tensor.dims().to_vec();
    let values = match tensor.dtype() {
        DType::F64 => Values::F64(tensor.clone().try_into_vec_as::<f64>()?),
        _ => Values::F32(tensor.clone().try_into_vec_as::<f32>()?),
    };
    Ok(Array { shape, values })
}

fn tensor_of(array: &Array, session: &Session) -> Result<Tensor<2>, CheckpointError> {
    let [rows, columns] = array.shape[..] else {
        return Err(CheckpointError::Content(format!("an optimiser's block is {:?}, not a matrix", array.shape)));
    };
    let data = match &array.values {
        Values::F32(values) => TensorData::new(values.clone(), [rows, columns]),
        Values::F64(values) => TensorData::new(values.clone(), [rows, columns]),
    };
    Ok(Tensor::from_data(data, (session.device(), session.dtype())))
}
