//! The layout of a particle: the place of each parameter block in its flat vector.

use burn::module::{Module, ModuleVisitor, Param};
use burn::tensor::Tensor;

/// One parameter tensor of a particle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// Path of the parameter in the module, for example `layers.0.weight`.
    pub name: String,
    /// Shape without the particle axis.
    pub shape: Vec<usize>,
    /// First coordinate in the flat vector.
    pub offset: usize,
}

impl Block {
    /// The number of coordinates.
    pub fn size(&self) -> usize {
        self.shape.iter().product()
    }
}

/// The blocks of one particle in visiting order: layer by layer, weight then bias, each row-major.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    blocks: Vec<Block>,
    dim: usize,
}

impl Layout {
    /// A layout from names and shapes without the particle axis, in order.
    pub fn new<'a>(blocks: impl IntoIterator<Item = (&'a str, &'a [usize])>) -> Self {
        let mut layout = Self::default();
        blocks.into_iter().for_each(|(name, shape)| layout.push(name.to_owned(), shape.to_vec()));
        layout
    }

    /// The layout of a module whose parameters are `[N, ...]`. No parameter is initialised.
    pub fn of_particles<M: Module>(module: &M) -> Self {
        Self::visit(module, 1)
    }

    /// The layout of an ordinary module: one particle is the whole module.
    pub fn of_module<M: Module>(module: &M) -> Self {
        Self::visit(module, 0)
    }

    fn visit<M: Module>(module: &M, skip: usize) -> Self {
        let mut reader = Reader { layout: Self::default(), path: Vec::new(), skip };
        module.visit(&mut reader);
        reader.layout
    }

    /// The blocks, in order.
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// Dimension d of the flat particle.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// The index of the block with this name.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.blocks.iter().position(|block| block.name == name)
    }

    fn push(&mut self, name: String, shape: Vec<usize>) {
        let block = Block { name, shape, offset: self.dim };
        self.dim += block.size();
        self.blocks.push(block);
    }
}

struct Reader {
    layout: Layout,
    path: Vec<String>,
    skip: usize,
}

impl ModuleVisitor for Reader {
    fn enter_module(&mut self, name: &str, _container: &str) {
        self.path.push(name.to_owned());
    }

    fn exit_module(&mut self, _name: &str, _container: &str) {
        self.path.pop();
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let shape = param.lazy_shape().to_vec();
        self.layout.push(self.path.join("."), shape[self.skip..].to_vec());
    }
}
