//! Splits the rows of an experiment into the files of sites: the rehearsal of a federation.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use toml::{Table, Value};

use crate::datasets::{Dataset, Partition, Targets, TrainTest};
use crate::error::RunError;
use crate::random::Streams;
use crate::report::csv::text_cell;
use crate::report::files::{FileError, create_private, directory_of, quoted, write_atomic};
use crate::site::is_formula;

use super::assigned::{Assigned, assigned};
use super::config::{ClassWeights, Config};
use super::schema::{Overrides, Source};

/// The server's configuration.
pub const RUN: &str = "run.toml";
/// A site's own file.
pub const SITE: &str = "site.toml";

/// The columns of the sites' files that are no feature.
struct Names {
    /// That of the target.
    target: String,
    /// That of the groups, where the rows have them.
    group: Option<String>,
}

impl Names {
    /// Names that no feature has.
    fn of(data: &Dataset) -> Self {
        let free = |name: &str| {
            let is_taken = |name: &String| data.feature_names.iter().flatten().any(|feature| feature == name);
            let mut name = name.to_owned();
            while is_taken(&name) {
                name.push('_');
            }
            name
        };
        Self { target: free("target"), group: data.groups.as_ref().map(|_| free("group")) }
    }
}

/// The files of [`split`].
#[derive(Debug)]
pub struct Split {
    /// The sites' own files.
    pub files: Vec<PathBuf>,
    /// Notes for the user, one sentence each.
    pub notes: Vec<String>,
}

/// Writes the rows of every client to `out/<client>/`, with the site's own file, and the server's configuration to
/// [`RUN`]. The rows are those that the models of a run in one process see, scaled and rotated, so that a federation of the
/// sites has the bits of that run.
///
/// # Errors
/// The directory exists and is not empty, the data cannot be read, have no target or belong to one client, a key needs the
/// rows in one process, or a file cannot be written; nothing is left behind then.
pub fn split(config: &Config, data_dir: &Path, out: &Path) -> Result<Split, RunError> {
    let place = Place::of(out)?;
    refuse_what_sites_cannot(config)?;
    let Assigned { data, partition, mut notes, .. } = assigned(config, None, data_dir, Streams::new(config.seed))?;
    refuse_formulas(&data.train)?;
    refuse_unknown_class(&data, &partition)?;
    config.model(&data.train)?;
    config.validation_rows(&data.train, &partition)?;
    let clients = 0..partition.clients().len();
    let server = server(config, &data.train, clients.clone().any(|client| !partition.calibration(client).is_empty()))?;
    // Some keys need rows in one process.
    let sites = Overrides { set: vec![format!("partition.clients={}", clients.len())], ..Overrides::default() };
    Config::load(Source { name: RUN, text: &server }, &sites)?;
    let names = site_names(clients.len(), partition.names());
    if let Some([first, second]) = alike(partition.clients()).map(|both| both.map(|client| &names[client])) {
        return Err(RunError::Config(format!(
            "the clients `{first}` and `{second}` have the same rows; a federation refuses two sites with the same file"
        )));
    }
    notes.extend(note_on_lost_test_rows(&data, &partition));
    notes.extend(place.note_on_leftovers());
    let tells_counts = config.class_weights()? != ClassWeights::None || config.evaluation.prior_correction;
    let rows = Rows { data: &data, partition: &partition, columns: Names::of(&data.train), tells_counts };
    place.fill(|directory| {
        let site = |client| {
            let head = format!("name = \"{}\"\nindex = {client}\nbackend = \"{}\"\n", names[client], config.backend);
            rows.write_site(client, &head, &directory.join(client.to_string()))
        };
        clients.clone().try_for_each(site)?;
        write(&directory.join(RUN), &server)
    })?;
    Ok(Split { files: clients.map(|client| out.join(client.to_string()).join(SITE)).collect(), notes })
}

/// The place of the new directory.
struct Place<'a> {
    out: &'a Path,
    /// The beginning of the names beside it under which processes write first; the number of the process follows.
    beside: String,
}

impl<'a> Place<'a> {
    /// # Errors
    /// There is something, or the path cannot be that of sites.
    fn of(out: &'a Path) -> Result<Self, RunError> {
        let refuse = |problem: &str| RunError::Config(format!("`{}` {problem}", out.display()));
        if fs::read_dir(out).is_ok_and(|mut entries| entries.next().is_some()) || out.is_file() {
            return Err(refuse("exists; name a new directory with --out"));
        }
        if out.to_string_lossy().contains(',') {
            return Err(refuse("has a comma, which separates the files of --sites; name another directory"));
        }
        let name = out.file_name().ok_or_else(|| refuse("has no name; name a new directory with --out"))?;
        Ok(Self { out, beside: format!(".{}.", name.to_string_lossy()) })
    }

    /// A note on what killed processes have left beside the place: rows are in it.
    fn note_on_leftovers(&self) -> Option<String> {
        let is_left = |entry: &fs::DirEntry| {
            let name = entry.file_name();
            name.to_string_lossy().strip_prefix(&self.beside).is_some_and(|process| process.parse::<u32>().is_ok())
        };
        let left = fs::read_dir(directory_of(self.out)).ok()?.flatten().filter(is_left);
        let mut left: Vec<String> = left.map(|entry| format!("`{}`", entry.path().display())).collect();
        left.sort();
        let (them, was) = if left.len() == 1 { ("it", "was") } else { ("them", "were") };
        (!left.is_empty()).then(|| {
            format!(
                "{} {was} left by a `site split` that was killed, with rows in {them}; unless one is at work there, remove {them}",
                left.join(", ")
            )
        })
    }

    /// Makes the directory with all its content, or not at all: it is written beside the place and then renamed.
    ///
    /// # Errors
    /// Those of `content`, or the directory cannot be renamed.
    fn fill(&self, content: impl FnOnce(&Path) -> Result<(), RunError>) -> Result<(), RunError> {
        let beside = self.out.with_file_name(format!("{}{}", self.beside, std::process::id()));
        let _ = fs::remove_dir_all(&beside);
        let filled = content(&beside).and_then(|()| {
            // An empty directory of that name is replaced.
            let _ = fs::remove_dir(self.out);
            fs::rename(&beside, self.out).map_err(|error| cannot(self.out, &error))
        });
        if filled.is_err() {
            let _ = fs::remove_dir_all(&beside);
        }
        filled
    }
}

/// The rows of an experiment and how sites have them.
struct Rows<'a> {
    data: &'a TrainTest,
    partition: &'a Partition,
    columns: Names,
    /// Whether sites tell how many rows of each class they have.
    tells_counts: bool,
}

impl Rows<'_> {
    /// Writes a client's rows and its own file, which begins with `head`.
    fn write_site(&self, client: usize, head: &str, dir: &Path) -> Result<(), RunError> {
        let Self { data, partition, columns, tells_counts } = self;
        create_private(dir).map_err(|error| cannot(dir, &error))?;
        let (validation, calibration) = (partition.validation(client), partition.calibration(client));
        let files = [
            ("path", "train.csv", &data.train, &partition.clients()[client][..]),
            ("test_path", "test.csv", &data.test, partition.test(client)),
            ("validation_path", "validation.csv", &data.train, validation),
            ("calibration_path", "calibration.csv", &data.train, calibration),
        ];
        // The file of training rows is there also where it has no row.
        let files = files.iter().filter(|(key, .., rows)| *key == "path" || !rows.is_empty());
        let mut keys = String::new();
        for (key, name, set, rows) in files {
            write(&dir.join(name), &csv(set, rows, columns)?)?;
            keys += &format!("{key} = \"{name}\"\n");
        }
        if partition.test(client).is_empty() {
            keys += "test_fraction = 0.0\n";
        }
        write(&dir.join(SITE), &site(head, &data.train, (columns, *tells_counts), &keys))
    }
}

/// Refuses an experiment whose rows must be in one place.
fn refuse_what_sites_cannot(config: &Config) -> Result<(), RunError> {
    if config.algorithm.capabilities().centralised {
        let name = config.algorithm.name();
        return Err(RunError::Config(format!("algorithm kind `{name}` needs all rows in one place")));
    }
    let properties = config.data()?.properties();
    if properties.is_toy() {
        return Err(no_rows());
    }
    if properties.unseen_clients {
        let problem = "the rows of these clients are at no site; leave `data.leave_out` empty, and the sites' directories out \
                       of --sites";
        return Err(RunError::Config(format!("data.leave_out: {problem}")));
    }
    Ok(())
}

fn no_rows() -> RunError {
    RunError::Config("a toy density has no rows that sites could hold".into())
}

/// Refuses a class whose name no site may have.
fn refuse_formulas(train: &Dataset) -> Result<(), RunError> {
    let Targets::Classes { names, .. } = &train.targets else { return Ok(()) };
    match names.iter().find(|name| is_formula(name)) {
        None => Ok(()),
        Some(name) => Err(RunError::Config(format!(
            "the class `{}` is a formula for a spreadsheet, which no site may have; rename it in the table",
            name.escape_debug()
        ))),
    }
}

/// Refuses a class that only held-out rows have: sites learn of classes from their training rows.
fn refuse_unknown_class(data: &TrainTest, partition: &Partition) -> Result<(), RunError> {
    let (Targets::Classes { labels, names }, Targets::Classes { labels: of_test, .. }) =
        (&data.train.targets, &data.test.targets)
    else {
        return Ok(());
    };
    let trained: BTreeSet<usize> = partition.clients().iter().flatten().map(|row| labels[*row]).collect();
    let mut held_out = (0..partition.clients().len()).flat_map(|client| {
        let train = partition.validation(client).iter().chain(partition.calibration(client)).map(|row| labels[*row]);
        train.chain(partition.test(client).iter().map(|row| of_test[*row]))
    });
    match held_out.find(|class| !trained.contains(class)) {
        None => Ok(()),
        Some(class) => Err(RunError::Config(format!(
            "the class `{}` is in held-out rows alone, and sites know classes from their training rows; hold out fewer rows, \
             take another seed, or leave the rows of this class out",
            quoted(&names[class])
        ))),
    }
}

/// A note on test rows that no client with training rows has, so that they are at no site.
fn note_on_lost_test_rows(data: &TrainTest, partition: &Partition) -> Option<String> {
    let at_sites = (0..partition.clients().len()).flat_map(|client| partition.test(client));
    let (rows, kept) = (data.test.rows(), at_sites.collect::<BTreeSet<_>>().len());
    (kept < rows).then(|| {
        let are = if rows - kept == 1 { "is" } else { "are" };
        format!("{} of the {rows} test rows {are} at no site: no client with training rows has them", rows - kept)
    })
}

/// The first two clients that have the same rows, and not none.
fn alike(clients: &[Vec<usize>]) -> Option<[usize; 2]> {
    let mut holders = HashMap::new();
    let mut with_rows = clients.iter().enumerate().filter(|(_, rows)| !rows.is_empty());
    with_rows.find_map(|(client, rows)| holders.insert(rows, client).map(|first| [first, client]))
}

/// The configuration with the rows at sites.
fn server(config: &Config, train: &Dataset, is_calibrated: bool) -> Result<String, RunError> {
    let mut table = Table::try_from(config).map_err(|error| RunError::Config(error.to_string()))?;
    table.remove("partition");
    // Without rows for it, the section is refused.
    if !is_calibrated {
        table.remove("calibration");
    }
    let task = if matches!(train.targets, Targets::Real { .. }) { "regression" } else { "classification" };
    let keys = [("kind", "sites"), ("task", task), ("normalise", "none")];
    let mut data = Table::from_iter(keys.map(|(key, value)| (key.to_owned(), Value::from(value))));
    // The order of the classes, and how often their rows count.
    let kept = ["positive", "class_weights"].into_iter();
    data.extend(kept.filter_map(|key| Some((key.to_owned(), config.data.get(key)?.clone()))));
    table.insert("data".into(), Value::Table(data));
    Ok(format!("# The server of a federation: fedstein train {RUN} --sites 0/{SITE},1/{SITE},...\n{table}"))
}

/// A site's own file, with its first keys and those of its files of rows; whether it tells how many rows each class has
/// depends on whether the run asks for it.
fn site(head: &str, train: &Dataset, (Names { target, group }, tells_counts): (&Names, bool), rows: &str) -> String {
    let task = if matches!(train.targets, Targets::Real { .. }) { "regression" } else { "classification" };
    let group = group.as_ref().map_or(String::new(), |group| format!("group_column = \"{group}\"\n"));
    let counts = if tells_counts { "class_counts = true\n" } else { "" };
    format!(
        "{head}\n[data]\n{rows}target = \
         \"{target}\"\ntask = \"{task}\"\nheader = \"yes\"\n{group}\n[tell]\nmin_rows = 1\n{counts}"
    )
}

/// The names of the sites: those of the natural clients as far as a site can have them, and all different.
fn site_names(clients: usize, natural: &[String]) -> Vec<String> {
    let mut names: Vec<String> = Vec::with_capacity(clients);
    for client in 0..clients {
        let own = natural.get(client).and_then(|name| site_name(name)).filter(|name| !names.contains(name));
        names.push(own.unwrap_or_else(|| format!("site-{client}")));
    }
    names
}

/// A natural client's name as the name of a site, with a `-` in the place of other characters than letters, digits, `-`, `_`
/// and `.`; `None` where nothing is left.
fn site_name(natural: &str) -> Option<String> {
    let allowed = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    let name: String = natural.chars().map(|letter| if allowed(letter) { letter } else { '-' }).take(100).collect();
    let name = name.trim_start_matches('.').to_owned();
    name.contains(|letter: char| letter.is_ascii_alphanumeric()).then_some(name)
}

/// Some rows as a table with the target in the first column, and the number of the group in the second where the rows have
/// groups. Numbers are written so that they are read back to the bit.
fn csv(data: &Dataset, rows: &[usize], columns: &Names) -> Result<String, RunError> {
    let names = (0..data.width()).map(|column| match &data.feature_names {
        Some(names) => names[column].clone(),
        None => format!("x{column}"),
    });
    let Names { target, group } = columns;
    let mut out = csv_line([target.clone()].into_iter().chain(group.clone()).chain(names));
    for row in rows {
        let target = match &data.targets {
            Targets::Classes { labels, names } => names[labels[*row]].clone(),
            Targets::Real { values } => values[*row].to_string(),
            Targets::None { .. } => return Err(no_rows()),
        };
        let features = data.features.row(*row);
        let group = data.groups.as_ref().map(|groups| groups[*row].to_string());
        out += &csv_line(std::iter::once(target).chain(group).chain(features.iter().map(ToString::to_string)));
    }
    Ok(out)
}

/// A line of cells, quoted where they need it.
fn csv_line(cells: impl Iterator<Item = String>) -> String {
    let mut line = String::new();
    for (place, cell) in cells.enumerate() {
        let comma = if place > 0 { "," } else { "" };
        // Writing to a text cannot fail.
        let _ = write!(line, "{comma}{}", text_cell(&cell));
    }
    line + "\n"
}

fn write(path: &Path, text: &str) -> Result<(), RunError> {
    write_atomic(path, text.as_bytes()).map_err(|error: FileError| RunError::Output(error.to_string()))
}

fn cannot(path: &Path, error: &io::Error) -> RunError {
    RunError::Output(format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sites_are_named_after_natural_clients_where_a_name_allows_it() {
        let natural = ["north", "St. Mary's", "St. Mary?s", "\u{6771}", "..x"].map(str::to_owned);
        assert_eq!(site_names(5, &natural), ["north", "St.-Mary-s", "site-2", "site-3", "x"]);
        assert_eq!(site_names(2, &[]), ["site-0", "site-1"]);
    }
}
