//! A config as pairs of keys and values.

use toml::{Table, Value};

/// Every key of a table of sections as `section.key`, or `key` at the top, with its value.
pub fn flat(table: &Table) -> impl Iterator<Item = (String, &Value)> {
    table.iter().flat_map(|(name, value)| {
        let section = value.as_table();
        let top = section.is_none().then(|| (name.clone(), value));
        let keys = section.into_iter().flatten().map(move |(key, value)| (format!("{name}.{key}"), value));
        top.into_iter().chain(keys)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_the_names_of_their_sections() {
        let text = "seed = 1\n[data]\nkind = \"csv\"\nmissing_values = { age = 9 }\n[stop]";
        let table: Table = text.parse().unwrap();
        let keys: Vec<String> = flat(&table).map(|(key, _)| key).collect();
        assert_eq!(keys, ["seed", "data.kind", "data.missing_values"]);
        assert!(flat(&table).all(|(key, value)| value.is_table() == (key == "data.missing_values")));
    }
}
