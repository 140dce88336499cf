//! What the name of a column says about it.

use crate::datasets::SurveyColumn;

/// Names that columns to predict have, in lower case, those that say most first.
const TARGETS: &[&str] = &[
    "target",
    "label",
    "labels",
    "class",
    "y",
    "outcome",
    "output",
    "response",
    "diagnosis",
    "species",
    "survived",
    "default",
    "died",
    "death",
    "dead",
    "deceased",
    "mortality",
    "hospital_mortality",
    "in_hospital_mortality",
    "mortality_30d",
    "readmitted",
    "readmission",
    "readmitted_30d",
    "readmission_30d",
    "relapse",
    "recurrence",
    "event",
    "length_of_stay",
    "los",
];

/// Names that columns of natural clients have, in lower case, with or without `_id`, `id` or `_name` at the end.
const PLACES: &[&str] = &[
    "client",
    "site",
    "hospital",
    "clinic",
    "centre",
    "center",
    "ward",
    "practice",
    "branch",
    "bank",
    "institution",
    "lab",
    "laboratory",
    "station",
    "region",
    "area",
    "district",
    "country",
    "plant",
    "factory",
    "store",
    "shop",
    "school",
    "device",
    "sensor",
    "machine",
    "node",
    "party",
    "silo",
];

/// Names that columns of persons have, as [`PLACES`].
const PERSONS: &[&str] = &[
    "patient",
    "patienten",
    "pat",
    "subject",
    "participant",
    "proband",
    "probanden",
    "versicherten",
    "pseudonym",
    "user",
    "person",
    "mrn",
    "pid",
];

/// Names of what a person has several rows of, or is known by, in lower case: `case_no`, `Fallnummer`.
const CASES: &[&str] = &["case", "fall", "episode", "admission", "encounter", "study"];

/// What a name of numbered persons or cases ends in, in lower case.
const NUMBERED: &[&str] = &["_nr", "_no", "_num", "_number", "_nummer", "nr", "nummer", "number"];

/// Names that columns of persons' names and addresses have, in lower case.
const OF_PERSONS: &[&str] = &[
    "name",
    "full_name",
    "first_name",
    "last_name",
    "surname",
    "forename",
    "email",
    "e_mail",
    "phone",
    "telephone",
    "address",
    "street",
    "ssn",
    "insurance_number",
];

/// Names that columns of ids have, in lower case; so have those that end in `_id` or `Id` or begin with `unnamed:`, and
/// those of clients.
const IDS: &[&str] = &[
    "",
    "id",
    "ids",
    "index",
    "idx",
    "key",
    "uuid",
    "guid",
    "nr",
    "no",
    "number",
    "row",
    "record",
    "case",
    "case_no",
    "rownames",
    "row_names",
];

/// Names that programs give to the first column of a table without names, in lower case.
const NOT_NAMED: &[&str] = &["v1", "x", "x1", "...1"];

/// How much the name says that the column is to be predicted: the smaller the more; `None` where it says nothing.
pub fn target_rank(column: &SurveyColumn) -> Option<usize> {
    let name = plain(column)?;
    TARGETS.iter().position(|target| *target == name)
}

/// Whether columns of natural clients have such a name, be they places or persons.
pub fn is_client(column: &SurveyColumn) -> bool {
    has_stem(column, PLACES) || is_person(column)
}

/// Whether columns of persons have such a name.
pub fn is_person(column: &SurveyColumn) -> bool {
    has_stem(column, PERSONS) || is_numbered(column, PERSONS)
}

/// Whether columns of numbered persons or cases have such a name, as `PatNr`, `Patient No.` and `Fallnummer`.
pub fn says_number(column: &SurveyColumn) -> bool {
    is_numbered(column, PERSONS) || is_numbered(column, CASES)
}

/// Whether texts under such a name are probably of persons each, which a site tells nobody.
pub fn is_of_persons(column: &SurveyColumn) -> bool {
    is_person(column) || plain(column).is_some_and(|name| OF_PERSONS.contains(&name.as_str()))
}

/// Whether columns of ids have such a name.
pub fn is_id(column: &SurveyColumn) -> bool {
    let is_listed = plain(column).is_some_and(|name| IDS.contains(&name.as_str()) || name.starts_with("unnamed:"));
    // As in `PassengerId`.
    let ends_in_id = column.name.as_ref().is_some_and(|name| name.ends_with("Id") || name.ends_with("ID"));
    is_listed || ends_in_id || says_id(column) || is_client(column)
}

/// Whether the name says `id` as a word of its own, as `patient_id` and `patientID` do, and `PAID` does not.
pub fn says_id(column: &SurveyColumn) -> bool {
    let Some(name) = &column.name else { return false };
    let follows_a_small_letter = || {
        let stem = name.strip_suffix("Id").or_else(|| name.strip_suffix("ID"));
        stem.is_some_and(|stem| stem.ends_with(char::is_lowercase))
    };
    plain(column).is_some_and(|name| name == "id" || name.ends_with("_id")) || follows_a_small_letter()
}

/// Whether the column has no name, or one that a program gave it.
pub fn is_not_named(column: &SurveyColumn) -> bool {
    plain(column).is_none_or(|name| NOT_NAMED.contains(&name.as_str()))
}

/// The name in lower case and with `_` for spaces.
fn plain(column: &SurveyColumn) -> Option<String> {
    column.name.as_ref().map(|name| name.to_lowercase().replace([' ', '-'], "_"))
}

/// Whether the name is one of these, followed by a word for a number. Full stops, blanks and hyphens count alike.
fn is_numbered(column: &SurveyColumn, names: &[&str]) -> bool {
    let Some(name) = &column.name else { return false };
    let words: Vec<&str> = name.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let name = words.join("_").to_lowercase();
    let stem = |end: &&str| name.strip_suffix(end).is_some_and(|stem| names.contains(&stem));
    NUMBERED.iter().any(stem)
}

fn has_stem(column: &SurveyColumn, names: &[&str]) -> bool {
    let Some(name) = plain(column) else { return false };
    let stem = name.strip_suffix("_id").or_else(|| name.strip_suffix("_name")).or_else(|| name.strip_suffix("id"));
    [Some(name.as_str()), stem].into_iter().flatten().any(|name| names.contains(&name))
}
