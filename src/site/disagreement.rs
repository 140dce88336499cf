//! The reasons why sites cannot train together.

use thiserror::Error;

/// Why sites cannot train together. A message names the sites, as [`called`](super::Description::called) does, and the column,
/// and quotes no value of a row.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Disagreement {
    /// There are no sites.
    #[error("there are no sites")]
    NoSites,
    /// Two sites claim to be one client.
    #[error("`index` {index} is claimed by two sites, `{first}` and `{second}`; give each its own")]
    SameIndex {
        /// The index.
        index: usize,
        /// The name of the one.
        first: String,
        /// The name of the other.
        second: String,
    },
    /// Two sites have one name, by which reports could not tell them apart.
    #[error("clients {first} and {second} are both named `{name}`; give each site its own `name`")]
    SameName {
        /// The one client.
        first: usize,
        /// The other.
        second: usize,
        /// The name.
        name: String,
    },
    /// No site has one of the indices 0 to K − 1.
    #[error("no site has the `index` {missing}: {}", indices_of(*sites))]
    MissingIndex {
        /// The smallest index that is missing.
        missing: usize,
        /// The number of sites K.
        sites: usize,
    },
    /// Two sites hold the same file, whose rows would count twice.
    #[error("{first} and {second} have the same file; its rows would count twice")]
    SameFile {
        /// The one site.
        first: String,
        /// The other site.
        second: String,
    },
    /// A classification whose target holds numbers with fractions.
    #[error(
        "{site} calls its task a classification, but its target holds numbers with fractions; set data.task = \
         \"regression\", or give its classes names that are no fractions"
    )]
    Fractions {
        /// The site.
        site: String,
    },
    /// A regression at one site and a classification at another.
    #[error("{site} holds a {found}, {first} a {expected}; `data.task` must be the same at all sites")]
    Task {
        /// The site that differs from the first one, client 0.
        site: String,
        /// Its task.
        found: &'static str,
        /// The first site.
        first: String,
        /// Its task.
        expected: &'static str,
    },
    /// One file has a header and another has none.
    #[error(
        "{without} has no header, {with} has: its columns cannot be matched by name; give its file a header, \
         or none of them"
    )]
    NoHeader {
        /// A site without.
        without: String,
        /// A site with a header.
        with: String,
    },
    /// A name of two columns at one site.
    #[error("{site} has two columns `{column}`, which cannot be told apart")]
    Twice {
        /// The site.
        site: String,
        /// The name.
        column: String,
    },
    /// Other columns than those of the first site, or another number of them.
    #[error("{site} has {found} feature{}, {first} has {expected}{difference}", if *found == 1 { "" } else { "s" })]
    Columns {
        /// The site that differs from the first one, client 0.
        site: String,
        /// The number of its features.
        found: usize,
        /// The first site.
        first: String,
        /// The number of its features.
        expected: usize,
        /// Which columns only one of them has.
        difference: String,
    },
    /// A column of texts, of dates or of yes and no at one site and of something else at another.
    #[error("{column} holds {what} at {holder} and {found} at {other}; name it in data.{key} of all sites, or of none")]
    Kinds {
        /// What the one site has: texts, dates, or yes and no.
        what: &'static str,
        /// The key that says so.
        key: &'static str,
        /// The first site with these.
        holder: String,
        /// What the other site has.
        found: &'static str,
        /// The first site without.
        other: String,
        /// The column.
        column: String,
    },
    /// Sites with a column of texts that tell none of them.
    #[error(
        "the texts of columns of categories, which one-hot encoding over all sites needs, are not told \
         (tell.categories = false) by {sites}"
    )]
    NoCategories {
        /// The sites.
        sites: String,
    },
    /// Two sites do different things with missing cells.
    #[error(
        "{first} has data.missing = \"{word}\", {other} has \"{other_word}\"; sites that fill missing cells must \
         fill them alike"
    )]
    Missing {
        /// The one site.
        first: String,
        /// Its word.
        word: &'static str,
        /// The other site.
        other: String,
        /// Its word.
        other_word: &'static str,
    },
    /// Sites that tell no sums, by which missing cells are filled.
    #[error(
        "data.missing = \"{word}\" needs the sums of all clients, which are not told (tell.statistics = false, or fewer \
         training rows, or groups of them, than tell.min_rows) by {sites}"
    )]
    NoMeans {
        /// The sites.
        sites: String,
        /// What becomes of missing cells.
        word: &'static str,
    },
    /// All cells of all columns are missing.
    #[error("all cells of all feature columns are missing at all clients")]
    NoFeature,
    /// A class that no site trains on.
    #[error(
        "no site has the class `{class}` in its file of training rows; a file of held-out or test rows of {sites} has it: is it \
         spelt as in the training rows?"
    )]
    Untrained {
        /// The class.
        class: String,
        /// The sites with rows of it.
        sites: String,
    },
    /// All rows of all clients are of one class.
    #[error("all clients hold one class only, `{class}`: there is nothing to learn")]
    OneClass {
        /// The class.
        class: String,
    },
}

/// The indices that so many sites have.
fn indices_of(sites: usize) -> String {
    match sites {
        1 => "that of a single site must be 0".into(),
        _ => format!("those of {sites} sites must be 0 to {}", sites - 1),
    }
}
