//! The words of a key, each of which stands for one value of an enum.

/// Declares the enum of a key's values, each with its word: what serde reads and writes, what [`Accepts::Choice`] lists,
/// and what messages call it.
///
/// The enum is `Copy` and compared by `==`; further traits are derived in an attribute. Its constants and functions are
/// `ALL`, `WORDS`, `word` and `named`. A crate that uses it depends on this one under its own name, `fedstein_schema`.
///
/// [`Accepts::Choice`]: crate::Accepts::Choice
///
/// ```
/// use fedstein_schema::{Accepts::Choice, Key, Literal::Text, key};
///
/// fedstein_schema::words! {
///     /// How rows are drawn.
///     #[derive(Default)]
///     pub enum Draw {
///         /// With repetitions.
///         #[default]
///         Any = "any",
///         /// Each row once.
///         EachOnce = "each-once",
///     }
/// }
///
/// const DRAW: Key = key("draw", Choice(Draw::WORDS), Text(Draw::Any.word()), "How rows are drawn.");
///
/// #[derive(serde::Deserialize)]
/// struct Config {
///     draw: Draw,
/// }
///
/// let config: Config = toml::from_str("draw = \"each-once\"").unwrap();
/// assert_eq!((config.draw, DRAW.accepts.describe()), (Draw::EachOnce, "one of `any`, `each-once`".to_owned()));
/// assert_eq!((Draw::named("any"), Draw::named("once")), (Some(Draw::Any), None));
/// assert_eq!(Draw::ALL, [Draw::Any, Draw::EachOnce]);
/// ```
#[macro_export]
macro_rules! words {
    (
        $(#[$meta:meta])*
        $vis:vis enum $name:ident {
            $($(#[$of_variant:meta])* $variant:ident = $word:literal),+ $(,)?
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, $crate::serde::Deserialize, $crate::serde::Serialize)]
        #[serde(crate = "fedstein_schema::serde")] // A text, in which `$crate` would stay as it is.
        $vis enum $name {
            $(
                $(#[$of_variant])*
                #[serde(rename = $word)]
                $variant
            ),+
        }

        impl $name {
            /// All values, in the order in which messages list their words.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The words of all values, in the same order.
            pub const WORDS: &'static [&'static str] = &[$($word),+];

            /// The word in a config.
            pub const fn word(self) -> &'static str {
                match self {
                    $(Self::$variant => $word),+
                }
            }

            /// The value with this word.
            pub fn named(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|value| value.word() == word)
            }
        }
    };
}
