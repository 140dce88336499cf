//! The models that a config can name.
//!
//! The file of a model holds its configuration (one struct, which serde reads, and its keys), the network and its
//! tests. A line in the list below adds it to the configuration and to its reference.

use std::ops::Deref;

use crate::kind::ModelKind;
use crate::{BlrSpec, BnnSpec, MixtureSpec, StackSpec};

fedstein_schema::kinds! {
    /// `[model]`: one of the models that a config can name, tagged by `kind`.
    pub enum ModelConfig: dyn ModelKind, MODEL_KINDS {
        Bnn(BnnSpec),
        Stack(StackSpec),
        Blr(BlrSpec),
        Mixture(MixtureSpec),
    }
}

impl Deref for ModelConfig {
    type Target = dyn ModelKind;

    fn deref(&self) -> &Self::Target {
        self.as_dyn()
    }
}

#[cfg(test)]
mod tests {
    use fedstein_schema::{Key, Kind};
    use toml::{Table, Value};

    use super::*;
    use crate::kind::{DataShape, TargetShape};

    /// The keys of a kind at their defaults; a required list of layers as one dense layer.
    fn defaults(kind: &Kind) -> Table {
        let value = |key: &Key| match key.default_for("sound") {
            Some(value) => value,
            None => Value::Array(vec!["dense 3".into()]),
        };
        let keys = kind.keys.iter().map(|key| (key.name.to_string(), value(key)));
        keys.chain([("kind".to_string(), kind.name.into())]).collect()
    }

    #[test]
    fn every_key_has_a_field_and_every_field_a_key() {
        for kind in MODEL_KINDS {
            let keys = defaults(kind);
            let config: ModelConfig = keys.clone().try_into().unwrap_or_else(|error| panic!("{}: {error}", kind.name));
            assert_eq!(config.kind().name, kind.name);
            assert_eq!(Table::try_from(&config).unwrap(), keys, "{}", kind.name);
            assert_eq!(config.check(), Ok(()));
        }
    }

    #[test]
    fn every_model_says_which_targets_it_needs() {
        for kind in MODEL_KINDS {
            let config: ModelConfig = defaults(kind).try_into().unwrap();
            let build = |targets, input: &[usize]| {
                config.build(&DataShape { name: "rows".into(), input: input.to_vec(), targets }).map(|_| ())
            };
            // Six numbers a row: 2·(1 + d + d²) with d = 1, the parameters of a mixture of two in one dimension.
            let two = build(TargetShape::Classes(2), &[6]);
            let none = build(TargetShape::None, &[6]);
            assert!(two.is_ok() || kind.name == "mixture", "{}: {two:?}", kind.name);
            match none {
                Ok(()) => assert_eq!(kind.name, "mixture"),
                Err(error) => assert!(error.to_string().contains("the data set `rows` has"), "{error}"),
            }
        }
    }
}
