//! A node of Flower's: a site that answers the messages of a ServerApp over a SuperLink, as a SuperNode does, in this
//! process and with nothing from outside that is executed.
//!
//! | file | holds |
//! |---|---|
//! | [`keys`] | the node's key and its signatures |
//! | [`wire`] | the encoding of protocol buffers |
//! | [`messages`] | the messages of the Fleet API |
//! | [`fleet`] | its calls |
//! | [`objects`] | the content of a message in pieces |
//! | [`node`] | what a node does |

pub(crate) mod fleet;
pub(crate) mod keys;
mod messages;
pub(crate) mod node;
mod objects;
mod wire;

/// The first and the last minor version of Flower with which this node is tested.
const TESTED: [(u32, u32); 2] = [(1, 40), (1, 42)];

/// The versions of Flower with which this node is tested, in a sentence.
fn tested() -> String {
    let [(major, minor), (last_major, last_minor)] = TESTED;
    format!("This node is tested with Flower {major}.{minor} to {last_major}.{last_minor}")
}

/// Whether this node is tested with a version of Flower, such as `1.41.0`.
fn is_tested(version: &str) -> bool {
    let mut numbers = version.split('.').map(|word| word.parse::<u32>().ok());
    let (Some(Some(major)), Some(Some(minor))) = (numbers.next(), numbers.next()) else { return false };
    (TESTED[0]..=TESTED[1]).contains(&(major, minor))
}

/// A text of the other side for a person: of a bounded length, without control characters.
fn foreign(text: &str) -> String {
    crate::report::quoted_within(text, 300)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_apps_in_python_are_tested_with_the_same_versions() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/python/package/fedstein/flower/_project.py");
        let [(major, minor), (last_major, last_minor)] = TESTED;
        // There the last one is the first that is not tested.
        let line = format!("FLOWER = (({major}, {minor}), ({last_major}, {}))", last_minor + 1);
        assert!(std::fs::read_to_string(path).unwrap().lines().any(|found| found == line), "no {line} in {path}");
    }

    #[test]
    fn the_tested_versions_are_those_from_the_first_to_the_last() {
        for (version, tested) in [
            ("1.39.9", false),
            ("1.40.0", true),
            ("1.41.0", true),
            ("1.42.7.dev1", true),
            ("1.43.0", false),
            ("2.41.0", false),
            ("", false),
            ("unknown", false),
        ] {
            assert_eq!(is_tested(version), tested, "{version}");
        }
    }
}
