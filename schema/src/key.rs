//! Keys, the kinds that use them, and the sections that the kinds belong to.

use toml::Value;

use super::value::{Accepts, Literal};

/// One key of a section, as one kind of that section uses it.
///
/// A key is a constant beside the field that it is read into. A key that two kinds share is one constant, to which each
/// kind may give its own default:
///
/// ```
/// use fedstein_schema::{COUNT, Key, Literal::Int, key};
///
/// const BATCH: Key = key("batch", COUNT, Int(100), "Rows of a minibatch.");
/// const KEYS: &[Key] = &[BATCH.default(Int(10))];
/// assert_eq!(KEYS[0].default, Some(Int(10)));
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Key {
    /// Its name within its section.
    pub name: &'static str,
    /// The values it accepts.
    pub accepts: Accepts,
    /// Its default in preset `sound`; `None` for a key that must be given.
    pub default: Option<Literal>,
    /// Its default in preset `paper`, where that differs.
    pub paper: Option<Literal>,
    /// Its default in preset `reference`, where that differs.
    pub reference: Option<Literal>,
    /// Its meaning, with unit and source.
    pub doc: &'static str,
}

/// A key with a default.
pub const fn key(name: &'static str, accepts: Accepts, default: Literal, doc: &'static str) -> Key {
    Key { default: Some(default), ..required(name, accepts, doc) }
}

/// A key that must be given.
pub const fn required(name: &'static str, accepts: Accepts, doc: &'static str) -> Key {
    Key { name, accepts, default: None, paper: None, reference: None, doc }
}

/// Lists of keys, one after the other. The compiler refuses another number of keys than N.
///
/// ```
/// use fedstein_schema::{COUNT, Key, Literal::Int, joined, key};
///
/// const SHARED: [Key; 1] = [key("steps", COUNT, Int(1), "Number of steps.")];
/// const KEYS: [Key; 2] = joined(&[&[key("batch", COUNT, Int(100), "Rows per minibatch.")], &SHARED]);
/// assert_eq!(KEYS[1].name, "steps");
/// ```
pub const fn joined<const N: usize>(lists: &[&[Key]]) -> [Key; N] {
    let mut keys = [required("", Accepts::Bool, ""); N];
    let (mut list, mut place) = (0, 0);
    while list < lists.len() {
        let mut from = 0;
        while from < lists[list].len() {
            keys[place] = lists[list][from];
            place += 1;
            from += 1;
        }
        list += 1;
    }
    assert!(place == N, "fewer keys than the length of the list");
    keys
}

impl Key {
    /// The same key with another default.
    #[must_use]
    pub const fn default(mut self, value: Literal) -> Self {
        self.default = Some(value);
        self
    }

    /// The same key with another default in preset `paper`.
    #[must_use]
    pub const fn paper(mut self, value: Literal) -> Self {
        self.paper = Some(value);
        self
    }

    /// The same key with another default in preset `reference`.
    #[must_use]
    pub const fn reference(mut self, value: Literal) -> Self {
        self.reference = Some(value);
        self
    }

    /// The same key with another meaning.
    #[must_use]
    pub const fn doc(mut self, doc: &'static str) -> Self {
        self.doc = doc;
        self
    }

    /// Its default in a preset; `None` for a key that must be given.
    pub fn default_for(&self, preset: &str) -> Option<Value> {
        let of_preset = match preset {
            "paper" => self.paper,
            "reference" => self.reference,
            _ => None,
        };
        of_preset.or(self.default).map(Literal::to_value)
    }

    /// Whether a preset changes its default.
    pub fn depends_on_preset(&self) -> bool {
        self.paper.is_some() || self.reference.is_some()
    }
}

/// One of the values of a section's key `kind`: an algorithm, a model, a data set, ….
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Kind {
    /// Its name, the value of `kind`; `""` for the only kind of a section without a key `kind`.
    pub name: &'static str,
    /// A description in a sentence.
    pub about: &'static str,
    /// Its keys, in the order of a resolved config.
    pub keys: &'static [Key],
}

impl Kind {
    /// Its key of this name.
    pub fn key(&self, name: &str) -> Option<&'static Key> {
        self.keys.iter().find(|key| key.name == name)
    }
}

/// One section of the config file.
#[derive(Debug, Clone, PartialEq)]
pub struct Section {
    /// Its name; `""` is the top of the file.
    pub name: &'static str,
    /// A description in a sentence.
    pub about: &'static str,
    /// The default kind; `None` for a section without a key `kind`.
    pub default_kind: Option<&'static str>,
    /// Its kinds; exactly one, named `""`, for a section without a key `kind`.
    pub kinds: Vec<Kind>,
    /// The keys that every kind has, after its own.
    pub common: &'static [Key],
}

impl Section {
    /// A section without a key `kind`.
    pub fn plain(name: &'static str, about: &'static str, keys: &'static [Key]) -> Self {
        Self { name, about, default_kind: None, kinds: vec![Kind { name: "", about: "", keys }], common: &[] }
    }

    /// A section whose keys depend on its `kind`.
    pub fn of_kinds(
        name: &'static str,
        about: &'static str,
        default_kind: &'static str,
        kinds: impl IntoIterator<Item = Kind>,
    ) -> Self {
        Self { name, about, default_kind: Some(default_kind), kinds: kinds.into_iter().collect(), common: &[] }
    }

    /// The same section with keys that every kind has, after its own.
    #[must_use]
    pub fn with_common(self, common: &'static [Key]) -> Self {
        Self { common, ..self }
    }

    /// The keys of a kind, its own first; none where there is no kind of this name.
    pub fn keys_of(&self, kind: &str) -> impl Iterator<Item = &'static Key> + use<> {
        let found = self.kind(kind).map(|kind| kind.keys.iter().chain(self.common));
        found.into_iter().flatten()
    }

    /// The kind of this name.
    pub fn kind(&self, name: &str) -> Option<&Kind> {
        self.kinds.iter().find(|kind| kind.name == name)
    }

    /// The names of its kinds; empty for a section without a key `kind`.
    pub fn kind_names(&self) -> Vec<&'static str> {
        self.kinds.iter().map(|kind| kind.name).filter(|name| !name.is_empty()).collect()
    }

    /// The names of the kinds that use a key.
    pub fn users(&self, key: &str) -> Vec<&'static str> {
        self.versions(key).map(|(kind, _)| kind).collect()
    }

    /// The key of this name as each kind that has it describes it, with the kind's name.
    pub fn versions(&self, key: &str) -> impl Iterator<Item = (&'static str, &'static Key)> {
        let of = move |kind: &Kind| Some((kind.name, self.keys_of(kind.name).find(|known| known.name == key)?));
        self.kinds.iter().filter_map(of)
    }

    /// The key of this name as `kind` describes it; if that kind has no such key, as the first kind that has one.
    pub fn key(&self, kind: &str, name: &str) -> Option<&'static Key> {
        let own = self.keys_of(kind).find(|key| key.name == name);
        own.or_else(|| self.versions(name).next().map(|(_, key)| key))
    }

    /// The names of all keys of all kinds without repetition; `kind` comes first if the section has it.
    pub fn key_names(&self) -> Vec<&'static str> {
        let mut names: Vec<&'static str> = self.default_kind.iter().map(|_| "kind").collect();
        for key in self.kinds.iter().flat_map(|kind| kind.keys).chain(self.common) {
            if !names.contains(&key.name) {
                names.push(key.name);
            }
        }
        names
    }

    /// The path of one of its keys: `section.key`, or `key` at the top of the file.
    pub fn path(&self, key: &str) -> String {
        join(self.name, key)
    }
}

/// All sections, in the order of a resolved config.
#[derive(Debug, Clone, PartialEq)]
pub struct Schema {
    /// The sections; `""`, the top of the file, comes first.
    pub sections: Vec<Section>,
}

impl Schema {
    /// The section of this name.
    pub fn section(&self, name: &str) -> Option<&Section> {
        self.sections.iter().find(|section| section.name == name)
    }

    /// Every key of every kind with its path, without repetition, in the order of a resolved config. The keys `kind` are
    /// not included.
    pub fn keys(&self) -> impl Iterator<Item = (String, &'static Key)> + '_ {
        self.sections.iter().flat_map(|section| {
            let names = section.key_names().into_iter();
            names.filter_map(|name| Some((section.path(name), section.key("", name)?)))
        })
    }

    /// The same schema with one more kind in a section.
    ///
    /// # Panics
    /// There is no such section, or it has a kind of this name.
    #[must_use]
    pub fn with_kind(mut self, section: &str, kind: Kind) -> Self {
        let found = self.sections.iter_mut().find(|known| known.name == section && known.default_kind.is_some());
        let found = found.unwrap_or_else(|| panic!("no section [{section}] with kinds"));
        assert!(found.kind(kind.name).is_none(), "[{section}] has a kind `{}` already", kind.name);
        found.kinds.push(kind);
        self
    }
}

/// Splits `section.key` into section and key; the section of a top-level key is `""`.
pub(crate) fn split(path: &str) -> (&str, &str) {
    path.split_once('.').unwrap_or(("", path))
}

/// The path of a section's key.
pub(crate) fn join(section: &str, name: &str) -> String {
    if section.is_empty() { name.to_string() } else { format!("{section}.{name}") }
}
