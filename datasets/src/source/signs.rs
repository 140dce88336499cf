//! Labels −1 and +1, which several published tables have.

/// The names of the classes −1 and +1; the index is the class.
pub(super) const SIGN_NAMES: [&str; 2] = ["-1", "+1"];
/// The labels of a two-class table, in words.
pub(super) const SIGNS: &str = "-1 and +1";

/// The class of a label −1 or +1.
pub(super) fn sign(label: i64) -> Option<usize> {
    match label {
        -1 => Some(0),
        1 => Some(1),
        _ => None,
    }
}
