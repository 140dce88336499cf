//! A parcel: an envelope in JSON and the `.npy` files of arrays. It is what a carrier delivers, as one frame of bytes
//! where the carrier is a stream.
//!
//! | frame | bytes |
//! |---|---|
//! | `fedstein` | 8 |
//! | length of the envelope, number of arrays | 4 each, little-endian |
//! | the envelope | |
//! | for each array: its length, and its `.npy` file | 8, little-endian |
//!
//! Frames of any origin are read: every length is compared with [`Limits`] first, and memory grows with what has arrived,
//! not with what is announced.

use std::io::{self, Read, Write};
use std::sync::Arc;

/// The first bytes of a frame.
const MAGIC: &[u8; 8] = b"fedstein";

/// The content of one message between server and site.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parcel {
    /// The envelope: JSON.
    pub envelope: Vec<u8>,
    /// The `.npy` files of the arrays, in the order in which the envelope lists them. Parcels to several clients share
    /// them.
    pub arrays: Vec<Arc<Vec<u8>>>,
}

/// The sizes above which a frame is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the envelope.
    pub envelope: u64,
    /// Number of arrays.
    pub arrays: usize,
    /// Bytes of all arrays together.
    pub bytes: u64,
}

impl Limits {
    /// Limits for arrays of this many bytes.
    pub fn of(bytes: u64) -> Self {
        Self { envelope: 64 << 20, arrays: 1024, bytes }
    }
}

/// A frame whose arrays are larger than the limit; they were skipped.
#[derive(Debug, PartialEq, Eq)]
pub struct TooLarge {
    /// Its envelope.
    pub envelope: Vec<u8>,
    /// The bytes of its arrays.
    pub bytes: u64,
}

/// The number of bytes that are reserved before a part of a frame is read.
const STEP: u64 = 1 << 16;

impl Parcel {
    /// The number of bytes of its frame.
    pub fn bytes(&self) -> u64 {
        let arrays = self.arrays.iter().map(|array| 8 + array.len() as u64).sum::<u64>();
        MAGIC.len() as u64 + 8 + self.envelope.len() as u64 + arrays
    }

    /// Writes the frame.
    ///
    /// # Errors
    /// The stream cannot be written, or the envelope is longer than 4 GiB.
    pub fn write(&self, to: &mut impl Write) -> io::Result<()> {
        let four = |length: usize| u32::try_from(length).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput));
        to.write_all(MAGIC)?;
        to.write_all(&four(self.envelope.len())?.to_le_bytes())?;
        to.write_all(&four(self.arrays.len())?.to_le_bytes())?;
        to.write_all(&self.envelope)?;
        for array in &self.arrays {
            to.write_all(&(array.len() as u64).to_le_bytes())?;
            to.write_all(array)?;
        }
        to.flush()
    }

    /// As [`Self::read`]. The arrays of a frame that are larger than the limit are skipped, and its envelope is returned
    /// as an error, so that it can be answered.
    ///
    /// # Errors
    /// Those of [`Self::read`] but that.
    pub fn read_or_skip(from: &mut impl Read, limits: Limits) -> io::Result<Option<Result<Self, TooLarge>>> {
        let Some((envelope, count, limits)) = Self::head(from, || limits)? else { return Ok(None) };
        let (mut arrays, mut bytes) = (Vec::new(), 0_u64);
        for _ in 0..count {
            let length = u64::from_le_bytes(exact(from)?);
            bytes = bytes.saturating_add(length);
            match bytes > limits.bytes {
                true if io::copy(&mut from.by_ref().take(length), &mut io::sink())? != length => {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                true => arrays.clear(),
                false => arrays.push(Arc::new(part(from, length)?)),
            }
        }
        Ok(Some(if bytes > limits.bytes { Err(TooLarge { envelope, bytes }) } else { Ok(Self { envelope, arrays }) }))
    }

    /// Reads a frame; `None` at the end of the stream.
    ///
    /// # Errors
    /// The stream cannot be read or ends within the frame, or the frame is none or exceeds a limit
    /// ([`io::ErrorKind::InvalidData`]).
    pub fn read(from: &mut impl Read, limits: Limits) -> io::Result<Option<Self>> {
        Self::read_within(from, || limits)
    }

    /// As [`Self::read`], where the limits are asked for when a frame begins to arrive: they may depend on what was sent
    /// meanwhile.
    ///
    /// # Errors
    /// Those of [`Self::read`].
    pub fn read_within(from: &mut impl Read, limits: impl FnOnce() -> Limits) -> io::Result<Option<Self>> {
        let Some((envelope, count, limits)) = Self::head(from, limits)? else { return Ok(None) };
        let (mut arrays, mut rest) = (Vec::new(), limits.bytes);
        for _ in 0..count {
            let length = u64::from_le_bytes(exact(from)?);
            rest = rest.checked_sub(length).ok_or_else(|| {
                refused(format!("its arrays have more than the {} bytes that are read", limits.bytes))
            })?;
            arrays.push(Arc::new(part(from, length)?));
        }
        Ok(Some(Self { envelope, arrays }))
    }

    /// The envelope of a frame, the number of its arrays, which come next, and the limits; `None` at the end of the stream.
    fn head(from: &mut impl Read, limits: impl FnOnce() -> Limits) -> io::Result<Option<(Vec<u8>, usize, Limits)>> {
        let mut magic = Vec::new();
        from.by_ref().take(MAGIC.len() as u64).read_to_end(&mut magic)?;
        if magic.is_empty() {
            return Ok(None);
        }
        if magic != MAGIC {
            return Err(refused("it does not begin like a message of fedstein".into()));
        }
        let limits = limits();
        let envelope = u64::from(u32::from_le_bytes(exact(from)?));
        let count = u32::from_le_bytes(exact(from)?) as usize;
        if envelope > limits.envelope {
            return Err(refused(format!("its envelope has {envelope} bytes; at most {} are read", limits.envelope)));
        }
        if count > limits.arrays {
            return Err(refused(format!("it has {count} arrays; at most {} are read", limits.arrays)));
        }
        Ok(Some((part(from, envelope)?, count, limits)))
    }
}

/// The next bytes of a stream.
fn exact<const N: usize>(from: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    from.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// The next `length` bytes of a stream. Memory grows with what has arrived.
fn part(from: &mut impl Read, length: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(length.min(STEP) as usize);
    if from.by_ref().take(length).read_to_end(&mut bytes)? as u64 != length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(bytes)
}

fn refused(reason: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LIMITS: Limits = Limits { envelope: 100, arrays: 3, bytes: 1000 };

    fn frame(parcel: &Parcel) -> Vec<u8> {
        let mut bytes = Vec::new();
        parcel.write(&mut bytes).unwrap();
        assert_eq!(bytes.len() as u64, parcel.bytes());
        bytes
    }

    fn parcel(envelope: &str, arrays: &[&[u8]]) -> Parcel {
        Parcel { envelope: envelope.into(), arrays: arrays.iter().map(|array| Arc::new(array.to_vec())).collect() }
    }

    #[test]
    fn frames_are_read_one_after_another_until_the_end_of_the_stream() {
        let (first, second) = (parcel("{}", &[b"abc", b""]), parcel("", &[]));
        let bytes = [frame(&first), frame(&second)].concat();
        let mut stream = bytes.as_slice();
        assert_eq!(Parcel::read(&mut stream, LIMITS).unwrap(), Some(first));
        assert_eq!(Parcel::read(&mut stream, LIMITS).unwrap(), Some(second));
        assert_eq!(Parcel::read(&mut stream, LIMITS).unwrap(), None);
    }

    #[test]
    fn a_frame_that_exceeds_a_limit_or_is_none_is_refused_before_it_is_read() {
        let announced = |envelope: u32, count: u32, length: u64| {
            [MAGIC.as_slice(), &envelope.to_le_bytes(), &count.to_le_bytes(), &length.to_le_bytes()].concat()
        };
        for (bytes, word) in [
            (b"GET / HTTP/1.1".to_vec(), "does not begin"),
            (announced(101, 0, 0), "101 bytes; at most 100"),
            (announced(0, 4, 0), "4 arrays; at most 3"),
            (announced(0, 1, u64::MAX), "more than the 1000 bytes"),
            (announced(0, 1, 1000), "unexpected end"),
            (announced(99, 0, 0), "unexpected end"),
            (frame(&parcel("{}", &[&[0; 600], &[0; 600]])), "more than the 1000 bytes"),
        ] {
            let error = Parcel::read(&mut bytes.as_slice(), LIMITS).unwrap_err().to_string();
            assert!(error.contains(word), "{error}, not {word}");
        }
    }

    #[test]
    fn arrays_that_are_too_large_are_skipped_and_the_next_frame_is_read() {
        let (large, next) = (parcel("{\"number\":7}", &[&[0; 600], &[1; 600], &[2; 3]]), parcel("{}", &[b"abc"]));
        let bytes = [frame(&large), frame(&next)].concat();
        let mut stream = bytes.as_slice();
        let skipped = Parcel::read_or_skip(&mut stream, LIMITS).unwrap().unwrap();
        assert_eq!(skipped, Err(TooLarge { envelope: large.envelope.clone(), bytes: 1203 }));
        assert_eq!(Parcel::read_or_skip(&mut stream, LIMITS).unwrap(), Some(Ok(next)));
        assert_eq!(Parcel::read_or_skip(&mut stream, LIMITS).unwrap(), None);
        let half = &bytes[..bytes.len() / 2];
        let error = Parcel::read_or_skip(&mut &*half, LIMITS).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        // What is no frame, or has too many arrays, is refused as by `read`.
        let announced = [MAGIC.as_slice(), &0_u32.to_le_bytes(), &4_u32.to_le_bytes()].concat();
        assert!(Parcel::read_or_skip(&mut announced.as_slice(), LIMITS).unwrap_err().to_string().contains("4 arrays"));
    }

    #[test]
    fn a_frame_is_judged_by_the_limits_of_the_time_at_which_it_arrives() {
        /// A stream that waits until a message has been sent, which sets the limit of its answer.
        struct Answer<'a>(&'a [u8], &'a std::cell::Cell<u64>);
        impl Read for Answer<'_> {
            fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
                self.1.set(5);
                self.0.read(to)
            }
        }
        let limit = std::cell::Cell::new(0);
        let (answer, limits) = (parcel("{}", &[b"12345"]), || Limits { bytes: limit.get(), ..LIMITS });
        let bytes = frame(&answer);
        assert_eq!(Parcel::read_within(&mut Answer(&bytes, &limit), limits).unwrap(), Some(answer));
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_frame_or_refused(mut bytes in proptest::collection::vec(any::<u8>(), 0..200), real in any::<bool>()) {
            if real {
                bytes.splice(0..0, [MAGIC.as_slice(), &[3, 0, 0, 0, 1, 0, 0, 0]].concat());
            }
            let _ = Parcel::read(&mut bytes.as_slice(), LIMITS);
        }
    }
}
