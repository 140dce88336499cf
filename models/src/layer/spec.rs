//! The text form of a layer, such as `conv 16 5x5`, and the shape of a layer's output.

use std::fmt;
use std::str::FromStr;

use super::{Activation, Pool};
use crate::error::ModelError;

const CONV: &str = "conv OUT KxK [stride S] [pad P | same]";
const MAX_POOL: &str = "max-pool K [stride S]";
const AVG_POOL: &str = "avg-pool K [stride S]";
const GLOBAL_AVG_POOL: &str = "global-avg-pool";
const DENSE: &str = "dense OUT";

/// The largest number in a layer's text: a larger one is taken for a typing error.
const LARGEST: usize = 1_000_000;

/// A layer of a config, which [`FromStr`] reads from its text and [`Display`](fmt::Display) writes as its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LayerSpec {
    /// `conv OUT KxK [stride S] [pad P | same]`: kernels are height x width; `same` pads an odd kernel so that, with
    /// stride 1, the image keeps its size.
    Conv {
        /// The number of output channels.
        outputs: usize,
        /// The height and the width of the kernel.
        kernel: [usize; 2],
        /// The number of pixels from one position to the next.
        stride: usize,
        /// The numbers of rows and columns of zeros on each side.
        pad: [usize; 2],
    },
    /// `max-pool K [stride S]`, `avg-pool K [stride S]` (the default stride is K), `global-avg-pool`.
    Pool(Pool),
    /// `dense OUT`, which flattens its input.
    Dense {
        /// The number of units.
        outputs: usize,
    },
    /// `relu`, `tanh`, ...
    Activation(Activation),
}

impl LayerSpec {
    /// Parses a list of layers.
    ///
    /// # Errors
    /// The first text that is not a layer, with its number.
    pub fn read<T: AsRef<str>>(texts: &[T]) -> Result<Vec<Self>, ModelError> {
        let read = |(i, text): (usize, &T)| {
            let text = text.as_ref();
            text.parse().map_err(|problem| ModelError::Layer { number: i + 1, text: text.to_owned(), problem })
        };
        texts.iter().enumerate().map(read).collect()
    }

    /// The shape of the layer's output.
    ///
    /// # Errors
    /// The layer does not fit its input; the error is a sentence.
    pub(crate) fn output(self, input: Shape) -> Result<Shape, String> {
        match self {
            Self::Activation(_) => Ok(input),
            Self::Dense { outputs } => Ok(Shape::Units(outputs)),
            Self::Conv { outputs, kernel, stride, pad } => {
                let [_, height, width] = input.image()?;
                let fit = windows([height, width], kernel, stride, pad);
                let [height, width] = fit.ok_or_else(|| {
                    let padding = if pad == [0, 0] { String::new() } else { " even with its padding".to_owned() };
                    let [high, wide] = kernel;
                    format!("its input is {input}, smaller than the {high}×{wide} kernel{padding}")
                })?;
                Ok(Shape::Image([outputs, height, width]))
            }
            Self::Pool(Pool::GlobalAverage) => input.image().map(|[channels, ..]| Shape::Image([channels, 1, 1])),
            Self::Pool(Pool::Max { size, stride } | Pool::Average { size, stride }) => {
                let [channels, height, width] = input.image()?;
                let fit = windows([height, width], [size; 2], stride, [0, 0]);
                let [height, width] =
                    fit.ok_or_else(|| format!("its input is {input}, smaller than its {size}×{size} window"))?;
                Ok(Shape::Image([channels, height, width]))
            }
        }
    }

    /// The number of weights and biases of one particle; `None` if a `usize` cannot hold it.
    pub(crate) fn parameters(self, input: Shape) -> Option<usize> {
        let (outputs, fan_in) = match (self, input) {
            (Self::Conv { outputs, kernel: [high, wide], .. }, Shape::Image([channels, ..])) => {
                (outputs, channels.checked_mul(high)?.checked_mul(wide)?)
            }
            (Self::Dense { outputs }, input) => (outputs, input.size()?),
            _ => return Some(0),
        };
        fan_in.checked_add(1)?.checked_mul(outputs)
    }
}

/// The numbers of positions of a window, down and across; `None` if it is larger than the image.
fn windows(image: [usize; 2], window: [usize; 2], stride: usize, pad: [usize; 2]) -> Option<[usize; 2]> {
    let count = |axis: usize| Some((image[axis] + 2 * pad[axis]).checked_sub(window[axis])? / stride + 1);
    Some([count(0)?, count(1)?])
}

/// The shape of the values between two layers, for one row of one particle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Features of a row that is not an image.
    Features(usize),
    /// Channels, height, width.
    Image([usize; 3]),
    /// Units of a dense layer.
    Units(usize),
}

impl Shape {
    /// The shape of a row: `[H, W]` is an image of one channel, `[C, H, W]` one of C; anything else is not an image.
    pub(crate) fn of_row(shape: &[usize]) -> Self {
        match *shape {
            [height, width] => Self::Image([1, height, width]),
            [channels, height, width] => Self::Image([channels, height, width]),
            _ => Self::Features(shape.iter().product()),
        }
    }

    /// The number of values; `None` if a `usize` cannot hold it.
    pub(crate) fn size(self) -> Option<usize> {
        match self {
            Self::Features(size) | Self::Units(size) => Some(size),
            Self::Image([channels, height, width]) => channels.checked_mul(height)?.checked_mul(width),
        }
    }

    /// Channels, height and width.
    ///
    /// # Errors
    /// This is not an image; the error is a sentence.
    pub(crate) fn image(self) -> Result<[usize; 3], String> {
        match self {
            Self::Image(image) => Ok(image),
            Self::Features(size) => Err(format!("it needs an image, but a row has {size} features and no image shape")),
            Self::Units(size) => Err(format!(
                "its input is {size} units, not an image; convolutions and pools must be before the first dense layer"
            )),
        }
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Features(size) => write!(f, "{size} features"),
            Self::Image([_, height, width]) => write!(f, "{height}×{width} (height × width)"),
            Self::Units(size) => write!(f, "{size} units"),
        }
    }
}

impl FromStr for LayerSpec {
    /// A sentence with the problem and a remedy.
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let words: Vec<&str> = text.split_whitespace().collect();
        match words.as_slice() {
            ["conv", outputs, kernel, options @ ..] => conv(outputs, kernel, options),
            ["max-pool", size, options @ ..] => {
                let (size, stride) = window(size, options, MAX_POOL)?;
                Ok(Self::Pool(Pool::Max { size, stride }))
            }
            ["avg-pool", size, options @ ..] => {
                let (size, stride) = window(size, options, AVG_POOL)?;
                Ok(Self::Pool(Pool::Average { size, stride }))
            }
            ["global-avg-pool"] => Ok(Self::Pool(Pool::GlobalAverage)),
            ["dense", outputs] => Ok(Self::Dense { outputs: number(outputs, 1)? }),
            ["conv", ..] => Err(must_read(CONV)),
            ["max-pool", ..] => Err(must_read(MAX_POOL)),
            ["avg-pool", ..] => Err(must_read(AVG_POOL)),
            ["global-avg-pool", ..] => Err(must_read(GLOBAL_AVG_POOL)),
            ["dense", ..] => Err(must_read(DENSE)),
            ["flatten", ..] => Err("it is not a layer: a dense layer flattens its input by itself".to_owned()),
            [word] => Activation::named(word).map(Self::Activation).ok_or_else(grammar),
            _ => Err(grammar()),
        }
    }
}

fn conv(outputs: &str, kernel: &str, mut options: &[&str]) -> Result<LayerSpec, String> {
    let outputs = number(outputs, 1)?;
    let sides = kernel
        .split_once('x')
        .ok_or_else(|| format!("`{kernel}` must be the kernel's height and width, such as 5x5, in `{CONV}`"))?;
    let kernel = [number(sides.0, 1)?, number(sides.1, 1)?];
    let (mut stride, mut pad) = (None, None);
    loop {
        options = match options {
            [] => break,
            ["stride", pixels, rest @ ..] if stride.is_none() => {
                stride = Some(number(pixels, 1)?);
                rest
            }
            ["pad", zeros, rest @ ..] if pad.is_none() => {
                let zeros = number(zeros, 0)?;
                if kernel.iter().any(|side| zeros >= *side) {
                    return Err(format!("`pad {zeros}` must be smaller than the kernel"));
                }
                pad = Some([zeros; 2]);
                rest
            }
            ["same", rest @ ..] if pad.is_none() => {
                if kernel.iter().any(|side| side % 2 == 0) {
                    return Err("`same` needs a kernel of odd height and width".to_owned());
                }
                pad = Some(kernel.map(|side| side / 2));
                rest
            }
            _ => return Err(must_read(CONV)),
        };
    }
    Ok(LayerSpec::Conv { outputs, kernel, stride: stride.unwrap_or(1), pad: pad.unwrap_or([0, 0]) })
}

/// The size and the stride of a pool.
fn window(size: &str, options: &[&str], form: &str) -> Result<(usize, usize), String> {
    let size = number(size, 1)?;
    match options {
        [] => Ok((size, size)),
        ["stride", pixels] => Ok((size, number(pixels, 1)?)),
        _ => Err(must_read(form)),
    }
}

fn number(word: &str, least: usize) -> Result<usize, String> {
    // `parse` would take a sign.
    let digits = word.bytes().all(|byte| byte.is_ascii_digit());
    let number = word.parse().ok().filter(|number| digits && (least..=LARGEST).contains(number));
    number.ok_or_else(|| format!("`{word}` must be a whole number from {least} to {LARGEST}"))
}

fn must_read(form: &str) -> String {
    format!("it must read `{form}`")
}

fn grammar() -> String {
    let forms = [CONV, MAX_POOL, AVG_POOL, GLOBAL_AVG_POOL, DENSE];
    let activations = Activation::WORDS.iter().copied();
    let list: Vec<String> = forms.into_iter().chain(activations).map(|form| format!("`{form}`")).collect();
    format!("it is not a layer; a layer is one of {}", list.join(", "))
}

impl fmt::Display for LayerSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let windowed = |f: &mut fmt::Formatter<'_>, word: &str, size: usize, stride: usize| {
            write!(f, "{word} {size}")?;
            if stride == size { Ok(()) } else { write!(f, " stride {stride}") }
        };
        match *self {
            Self::Conv { outputs, kernel: [high, wide], stride, pad } => {
                write!(f, "conv {outputs} {high}x{wide}")?;
                if stride != 1 {
                    write!(f, " stride {stride}")?;
                }
                match pad {
                    [0, 0] => Ok(()),
                    [top, left] if top == left => write!(f, " pad {top}"),
                    _ => f.write_str(" same"),
                }
            }
            Self::Pool(Pool::Max { size, stride }) => windowed(f, "max-pool", size, stride),
            Self::Pool(Pool::Average { size, stride }) => windowed(f, "avg-pool", size, stride),
            Self::Pool(Pool::GlobalAverage) => f.write_str(GLOBAL_AVG_POOL),
            Self::Dense { outputs } => write!(f, "dense {outputs}"),
            Self::Activation(activation) => f.write_str(activation.word()),
        }
    }
}
