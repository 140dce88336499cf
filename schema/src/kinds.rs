//! The list of a section's kinds: one line makes a kind known.

/// Declares the enum of a section's kinds, which serde reads from a table tagged by `kind`, and the list of their
/// [`Kind`](crate::Kind)s.
///
/// Each variant holds the configuration of one kind: a struct that serde reads, with an associated constant `KIND` of
/// type [`Kind`](crate::Kind). A trait that all of these structs implement may follow after `dyn`; the method `as_dyn`
/// then gives access to it.
///
/// ```
/// use fedstein_schema::{COUNT, Kind, Literal::Int, key};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
/// pub struct Cut {
///     parts: usize,
/// }
///
/// impl Cut {
///     const KIND: Kind = Kind { name: "cut", about: "Equal parts.", keys: &[key("parts", COUNT, Int(3), "How many.")] };
/// }
///
/// trait Split {
///     fn parts(&self) -> usize;
/// }
///
/// impl Split for Cut {
///     fn parts(&self) -> usize {
///         self.parts
///     }
/// }
///
/// fedstein_schema::kinds! {
///     /// `[split]`
///     pub enum SplitConfig: dyn Split, SPLIT_KINDS {
///         Cut(Cut),
///     }
/// }
///
/// let split: SplitConfig = toml::from_str("kind = \"cut\"\nparts = 2").unwrap();
/// assert_eq!((split.as_dyn().parts(), split.kind().name, SPLIT_KINDS.len()), (2, "cut", 1));
/// ```
#[macro_export]
macro_rules! kinds {
    (
        $(#[$meta:meta])*
        $vis:vis enum $name:ident: dyn $class:path, $kinds:ident {
            $($variant:ident($config:ty)),+ $(,)?
        }
    ) => {
        $crate::kinds! {
            $(#[$meta])*
            $vis enum $name, $kinds { $($variant($config)),+ }
        }

        impl $name {
            /// The configuration as the trait that all kinds implement.
            #[allow(dead_code)] // Not every section uses it.
            fn as_dyn(&self) -> &(dyn $class + 'static) {
                match self {
                    $(Self::$variant(config) => config),+
                }
            }
        }
    };
    (
        $(#[$meta:meta])*
        $vis:vis enum $name:ident, $kinds:ident {
            $($variant:ident($config:ty)),+ $(,)?
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq)]
        $vis enum $name {
            $(
                #[doc = concat!("The keys of `", stringify!($config), "`, which are documented in its own file.")]
                $variant($config)
            ),+
        }

        #[doc = concat!("The kinds of [`", stringify!($name), "`] with their keys.")]
        $vis const $kinds: &[$crate::Kind] = &[$(<$config>::KIND),+];

        impl $name {
            /// The name of the kind, its description and its keys.
            $vis fn kind(&self) -> $crate::Kind {
                match self {
                    $(Self::$variant(_) => <$config>::KIND),+
                }
            }
        }

        impl<'de> $crate::serde::Deserialize<'de> for $name {
            fn deserialize<D: $crate::serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                use $crate::serde::de::Error;
                let (kind, keys) = $crate::untag::<D>(deserializer)?;
                $(if kind == <$config>::KIND.name {
                    return keys.try_into().map(Self::$variant).map_err(D::Error::custom);
                })+
                Err(D::Error::custom(format!("there is no kind `{kind}`")))
            }
        }

        impl $crate::serde::Serialize for $name {
            fn serialize<S: $crate::serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                match self {
                    $(Self::$variant(keys) => $crate::Tagged { kind: <$config>::KIND.name, keys }.serialize(serializer)),+
                }
            }
        }
    };
}

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use toml::{Table, Value};

/// A configuration with the name of its kind.
#[derive(Debug, Serialize)]
#[doc(hidden)]
pub struct Tagged<'a, T> {
    /// The name of the kind.
    pub kind: &'a str,
    /// The keys.
    #[serde(flatten)]
    pub keys: &'a T,
}

/// Splits a table tagged by `kind` into the name of the kind and the other keys.
///
/// # Errors
/// The value is not a table, or it has no text under `kind`.
#[doc(hidden)]
pub fn untag<'de, D: Deserializer<'de>>(deserializer: D) -> Result<(String, Table), D::Error> {
    let mut keys = Table::deserialize(deserializer)?;
    match keys.remove("kind") {
        Some(Value::String(kind)) => Ok((kind, keys)),
        _ => Err(D::Error::missing_field("kind")),
    }
}
