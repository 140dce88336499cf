//! The encoding of protocol buffers, as far as Flower's messages need it: a message is a sequence of fields, each with its
//! number, the form of its value, and the value. Bytes of any origin are read.
//!
//! Written by hand: the macros of the usual crate need features of others that Burn's macros need too, and with them all
//! of Burn is compiled again.

use std::cell::Cell;

/// The deepest nesting of messages that is read.
const DEEPEST: usize = 16;
/// The largest number of messages and texts in lists that is read in one message: two bytes that announce one become many
/// in memory.
const MOST_PARTS: usize = 1 << 18;

/// The place of a message in others, and how many parts may still be read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'a> {
    depth: usize,
    left: &'a Cell<usize>,
}

impl Place<'_> {
    /// Counts a part; `None` where there are too many.
    fn count(self) -> Option<()> {
        self.left.set(self.left.get().checked_sub(1)?);
        Some(())
    }
}

/// A message: the fields that this program knows. Others are skipped.
pub(crate) trait Message: Default {
    /// Appends the fields that have another value than the default.
    fn write(&self, to: &mut Vec<u8>);

    /// Takes a value of the field with this number; `None` where the value has not the form of the field.
    fn take(&mut self, number: u32, value: Value<'_>, place: Place<'_>) -> Option<()>;

    /// The message as bytes.
    fn encoded(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.write(&mut bytes);
        bytes
    }

    /// The message of these bytes; `None` where they are none.
    fn decoded(bytes: &[u8]) -> Option<Self> {
        Self::decoded_at(bytes, Place { depth: 0, left: &Cell::new(MOST_PARTS) })
    }

    /// The same at a place in another message.
    fn decoded_at(mut bytes: &[u8], place: Place<'_>) -> Option<Self> {
        let mut message = Self::default();
        while !bytes.is_empty() {
            let key = varint(&mut bytes)?;
            let value = match key & 7 {
                0 => Value::Number(varint(&mut bytes)?),
                1 => Value::Eight(u64::from_le_bytes(fixed(&mut bytes)?)),
                2 => {
                    let length = usize::try_from(varint(&mut bytes)?).ok()?;
                    let (value, rest) = bytes.split_at_checked(length)?;
                    bytes = rest;
                    Value::Bytes(value)
                }
                5 => {
                    fixed::<4>(&mut bytes)?;
                    continue;
                }
                _ => return None,
            };
            message.take(u32::try_from(key >> 3).ok()?, value, place)?;
        }
        Some(message)
    }
}

/// A value in one of its forms.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Value<'a> {
    /// A number of as many bytes as it needs.
    Number(u64),
    /// Eight bytes.
    Eight(u64),
    /// A text, bytes, a message or several numbers.
    Bytes(&'a [u8]),
}

/// A field of a message.
pub(crate) trait Field {
    /// Appends the field, unless it has the default value.
    fn write(&self, number: u32, to: &mut Vec<u8>);

    /// Takes a value; `None` where it has another form.
    fn take(&mut self, value: Value<'_>, place: Place<'_>) -> Option<()>;
}

/// A whole number with a sign, which takes few bytes where it is small.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Signed(pub i64);

/// Defines messages, each with its fields and their numbers.
macro_rules! messages {
    ($($(#[$about:meta])* $name:ident { $($(#[$of:meta])* $number:literal $field:ident: $kind:ty,)* })*) => {$(
        $(#[$about])*
        #[derive(Clone, Debug, Default, PartialEq)]
        pub(crate) struct $name {
            $($(#[$of])* pub $field: $kind,)*
        }

        impl $crate::flower::wire::Message for $name {
            #[allow(unused_variables, reason = "a message may have no fields")]
            fn write(&self, to: &mut Vec<u8>) {
                $($crate::flower::wire::Field::write(&self.$field, $number, to);)*
            }

            #[allow(unused_variables, reason = "a message may have no fields")]
            fn take(
                &mut self,
                number: u32,
                value: $crate::flower::wire::Value<'_>,
                place: $crate::flower::wire::Place<'_>,
            ) -> Option<()> {
                match number {
                    $($number => $crate::flower::wire::Field::take(&mut self.$field, value, place),)*
                    _ => Some(()),
                }
            }
        }
    )*};
}
pub(crate) use messages;

/// The next number of a variable length.
fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0u64;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        let part = u64::from(byte & 0x7f);
        // The tenth byte has one bit.
        if shift == 63 && part > 1 {
            return None;
        }
        number |= part << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

/// The next N bytes.
fn fixed<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (value, rest) = bytes.split_first_chunk::<N>()?;
    *bytes = rest;
    Some(*value)
}

fn put(mut number: u64, to: &mut Vec<u8>) {
    while number >= 0x80 {
        to.push(number as u8 | 0x80);
        number >>= 7;
    }
    to.push(number as u8);
}

fn put_number(field: u32, number: u64, to: &mut Vec<u8>) {
    put(u64::from(field) << 3, to);
    put(number, to);
}

fn put_eight(field: u32, bits: u64, to: &mut Vec<u8>) {
    put(u64::from(field) << 3 | 1, to);
    to.extend(bits.to_le_bytes());
}

fn put_bytes(field: u32, bytes: &[u8], to: &mut Vec<u8>) {
    put(u64::from(field) << 3 | 2, to);
    put(bytes.len() as u64, to);
    to.extend(bytes);
}

fn text(value: Value<'_>) -> Option<String> {
    let Value::Bytes(bytes) = value else { return None };
    String::from_utf8(bytes.to_vec()).ok()
}

fn nested<M: Message>(value: Value<'_>, place: Place<'_>) -> Option<M> {
    place.count()?;
    match value {
        Value::Bytes(bytes) if place.depth < DEEPEST => M::decoded_at(bytes, Place { depth: place.depth + 1, ..place }),
        _ => None,
    }
}

impl Field for u64 {
    fn write(&self, number: u32, to: &mut Vec<u8>) {
        if *self != 0 {
            put_number(number, *self, to);
        }
    }

    fn take(&mut self, value: Value<'_>, _: Place<'_>) -> Option<()> {
        let Value::Number(found) = value else { return None };
        *self = found;
        Some(())
    }
}

impl Field for bool {
    fn write(&self, number: u32, to: &mut Vec<u8>) {
        u64::from(*self).write(number, to);
    }

    fn take(&mut self, value: Value<'_>, _: Place<'_>) -> Option<()> {
        let Value::Number(found) = value else { return None };
        *self = found != 0;
        Some(())
    }
}

impl Field for Signed {
    fn write(&self, number: u32, to: &mut Vec<u8>) {
        // 0, −1, 1, −2, … are 0, 1, 2, 3, …
        (((self.0 << 1) ^ (self.0 >> 63)) as u64).write(number, to);
    }

    fn take(&mut self, value: Value<'_>, _: Place<'_>) -> Option<()> {
        let Value::Number(found) = value else { return None };
        self.0 = (found >> 1) as i64 ^ -((found & 1) as i64);
        Some(())
    }
}

impl Field for f64 {
    fn write(&self, number: u32, to: &mut Vec<u8>) {
        if self.to_bits() != 0 {
            put_eight(number, self.to_bits(), to);
        }
    }

    fn take(&mut self, value: Value<'_>, _: Place<'_>) -> Option<()> {
        let Value::Eight(bits) = value else { return None };
        *self = f64::from_bits(bits);
        Some(())
    }
}

impl Field for String {
    fn write(&self, number: u32, to: &mut Vec<u8>) {
        if !self.is_empty() {
            put_bytes(number, self.as_bytes(), to);
        }
    }

    fn take(&mut self, value: Value<'_>, _: Place<'_>) -> Option<()> {
        *self = text(value)?;
        Some(())
    }
}

impl Field for Vec<u8> {
    fn write(&self, number: u32, to: &mut Vec<u8>) {
        if !self.is_empty() {
            put_bytes(number, self, to);
        }
    }

    fn take(&mut self, value: Value<'_>, _: Place<'_>) -> Option<()> {
        let Value::Bytes(found) = value else { return None };
        *self = found.to_vec();
        Some(())
    }
}

impl Field for Vec<f64> {
    fn write(&self, number: u32, to: &mut Vec<u8>) {
        if !self.is_empty() {
            let bytes: Vec<u8> = self.iter().flat_map(|value| value.to_le_bytes()).collect();
            put_bytes(number, &bytes, to);
        }
    }

    fn take(&mut self, value: Value<'_>, _: Place<'_>) -> Option<()> {
        match value {
            Value::Bytes(bytes) => self.extend(bytes.as_chunks().0.iter().map(|bytes| f64::from_le_bytes(*bytes))),
            Value::Eight(bits) => self.push(f64::from_bits(bits)),
            Value::Number(_) => return None,
        }
        Some(())
    }
}

impl Field for Vec<String> {
    fn write(&self, number: u32, to: &mut Vec<u8>) {
        self.iter().for_each(|value| put_bytes(number, value.as_bytes(), to));
    }

    fn take(&mut self, value: Value<'_>, place: Place<'_>) -> Option<()> {
        place.count()?;
        self.push(text(value)?);
        Some(())
    }
}

impl<M: Message> Field for Vec<M> {
    fn write(&self, number: u32, to: &mut Vec<u8>) {
        self.iter().for_each(|value| put_bytes(number, &value.encoded(), to));
    }

    fn take(&mut self, value: Value<'_>, place: Place<'_>) -> Option<()> {
        self.push(nested(value, place)?);
        Some(())
    }
}

impl<M: Message> Field for Option<M> {
    fn write(&self, number: u32, to: &mut Vec<u8>) {
        if let Some(value) = self {
            put_bytes(number, &value.encoded(), to);
        }
    }

    fn take(&mut self, value: Value<'_>, place: Place<'_>) -> Option<()> {
        *self = Some(nested(value, place)?);
        Some(())
    }
}

/// A value that is written even where it is the default: a field with presence, or one of several.
macro_rules! present {
    ($($kind:ty: $written:expr;)*) => {$(
        impl Field for Option<$kind> {
            fn write(&self, number: u32, to: &mut Vec<u8>) {
                let write: fn(&$kind, u32, &mut Vec<u8>) = $written;
                if let Some(value) = self {
                    write(value, number, to);
                }
            }

            fn take(&mut self, value: Value<'_>, place: Place<'_>) -> Option<()> {
                let mut found = <$kind>::default();
                found.take(value, place)?;
                *self = Some(found);
                Some(())
            }
        }
    )*};
}

present! {
    u64: |value, number, to| put_number(number, *value, to);
    f64: |value, number, to| put_eight(number, value.to_bits(), to);
    String: |value, number, to| put_bytes(number, value.as_bytes(), to);
    Signed: |value, number, to| match value {
        Signed(0) => put_number(number, 0, to),
        value => value.write(number, to),
    };
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    messages! {
        /// A field of each kind.
        All {
            1 whole: u64,
            2 yes: bool,
            3 signed: Signed,
            4 float: f64,
            5 text: String,
            6 bytes: Vec<u8>,
            7 floats: Vec<f64>,
            8 texts: Vec<String>,
            9 more: Vec<All>,
            20 maybe: Option<u64>,
            21 maybe_text: Option<String>,
            22 maybe_signed: Option<Signed>,
            23 maybe_float: Option<f64>,
        }
    }

    fn sample() -> All {
        let inner = All { whole: 300, signed: Signed(-2), text: "ä".into(), ..All::default() };
        All {
            whole: u64::MAX,
            yes: true,
            signed: Signed(i64::MIN),
            float: -0.0,
            bytes: vec![0, 255],
            floats: vec![0.5, f64::INFINITY],
            texts: vec!["a".into(), String::new()],
            more: vec![inner, All::default()],
            maybe: Some(0),
            maybe_text: Some(String::new()),
            maybe_signed: Some(Signed(0)),
            maybe_float: Some(0.0),
            ..All::default()
        }
    }

    #[test]
    fn what_was_written_is_read_and_defaults_take_no_bytes() {
        let all = sample();
        assert_eq!(All::decoded(&all.encoded()).unwrap(), all);
        assert!(All::default().encoded().is_empty());
        // 300 in the first field is the example of the encoding's description: 08 ac 02.
        assert_eq!(All { whole: 300, ..All::default() }.encoded(), [8, 0xac, 2]);
        assert_eq!(All { signed: Signed(-2), ..All::default() }.encoded(), [24, 3]);
    }

    #[test]
    fn fields_that_are_not_known_are_skipped_and_others_must_have_their_form() {
        // A number, eight bytes, a text and four bytes, in the fields 40 to 43.
        let unknown = [0xc0, 2, 5, 0xc9, 2, 1, 2, 3, 4, 5, 6, 7, 8, 0xd2, 2, 1, 65, 0xdd, 2, 1, 2, 3, 4];
        assert_eq!(All::decoded(&[&unknown[..], &[8, 1]].concat()).unwrap().whole, 1);
        for bytes in [
            &[8][..],                                              // cut off
            &[10, 1, 65],                                          // bytes for a number
            &[42, 2, 65],                                          // cut off
            &[42, 1, 0xff],                                        // not UTF-8
            &[11],                                                 // a group
            &[8, 255, 255, 255, 255, 255, 255, 255, 255, 255, 2],  // more than 64 bits
            &[42, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1], // a length beyond memory
        ] {
            assert_eq!(All::decoded(bytes), None, "{bytes:?}");
        }
    }

    #[test]
    fn messages_that_are_too_deep_are_refused() {
        let deep = |levels| (0..levels).fold(All::default(), |inner, _| All { more: vec![inner], ..All::default() });
        assert!(All::decoded(&deep(DEEPEST).encoded()).is_some());
        assert_eq!(All::decoded(&deep(DEEPEST + 1).encoded()), None);
    }

    #[test]
    fn messages_with_too_many_parts_are_refused() {
        // An empty message in the field 9, and an empty text in the field 8.
        for part in [[74, 0], [66, 0]] {
            assert!(All::decoded(&part.repeat(MOST_PARTS)).is_some());
            assert_eq!(All::decoded(&part.repeat(MOST_PARTS + 1)), None);
        }
        // Half of them in a message within.
        let inner = [74, 0].repeat(MOST_PARTS / 2);
        let mut bytes = inner.clone();
        put_bytes(9, &inner, &mut bytes);
        assert_eq!(All::decoded(&bytes), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_message_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..60), at in any::<usize>()) {
            let _ = All::decoded(&bytes);
            let mut changed = sample().encoded();
            let at = at % changed.len();
            bytes.first().into_iter().for_each(|byte| changed[at] ^= byte);
            let _ = All::decoded(&changed);
        }
    }
}
