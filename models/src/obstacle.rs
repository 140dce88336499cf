//! What in a Burn module cannot become part of particles.

use burn::module::{Flag, Module, ModuleVisitor, Param, ParamId};
use burn::tensor::Tensor;

/// Why a module cannot be trained, in a sentence that begins with "its"; `None` where it can.
pub(crate) fn of<M: Module>(module: &M) -> Option<String> {
    let mut found = Obstacles::default();
    // `train` marks the parameters that have a gradient, on whatever device they were made.
    module.valid().train().visit(&mut found);
    let mode = found.mode.map(|layer| {
        format!(
            "its layer `{layer}` acts differently in training, as BatchNorm and Dropout do: it reads the other rows of a \
             minibatch, or draws random numbers that no seed governs; use LayerNorm or GroupNorm, or leave it out"
        )
    });
    let frozen = found.frozen.map(|path| {
        format!(
            "its parameter `{path}` has no gradient (`no_grad`, or made without one), and every float parameter becomes part of the particles; \
             keep a tensor that is not trained in a field that is no `Param`"
        )
    });
    let tied = found.tied.map(|path| {
        format!(
            "its parameter `{path}` has the `ParamId` of an earlier one, and would be trained apart from it; keep it once, \
             and use it twice in the forward pass"
        )
    });
    mode.or(frozen).or(tied)
}

/// Finds the first of each.
#[derive(Default)]
struct Obstacles {
    path: Vec<String>,
    seen: Vec<ParamId>,
    /// The first layer with a training mode: Burn marks these by a flag.
    mode: Option<String>,
    /// The first parameter without a gradient.
    frozen: Option<String>,
    /// The first parameter that is the same as an earlier one.
    tied: Option<String>,
}

impl ModuleVisitor for Obstacles {
    fn enter_module(&mut self, name: &str, _container: &str) {
        self.path.push(name.to_owned());
    }

    fn exit_module(&mut self, _name: &str, _container: &str) {
        self.path.pop();
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let path = || self.path.join(".");
        if !param.is_require_grad() {
            self.frozen.get_or_insert_with(path);
        }
        if self.seen.contains(&param.id) {
            self.tied.get_or_insert_with(path);
        }
        self.seen.push(param.id);
    }

    fn visit_flag(&mut self, _flag: &Param<Flag>) {
        // The last name is that of the flag itself.
        let layer = &self.path[..self.path.len().saturating_sub(1)];
        self.mode.get_or_insert_with(|| layer.join("."));
    }
}
