//! The columns of all sites as features: what all sites agree on, and a site's own rows in that form.

use std::collections::HashMap;

use ndarray::Axis;

use super::describe::{Description, these};
use super::disagreement::Disagreement;
use super::fit::{Holder, Misfit, columns};
use crate::datasets::columns::{CellKind, Columns, Encoded, Missing, Tally};
use crate::datasets::moments::ColumnSum;
use crate::datasets::{Dataset, Encoding, ExactSum};
use crate::report::quoted;

/// The tallies of each site's columns, in the order of client 0.
pub(super) struct Tallies {
    /// `[K][p]`.
    of_site: Vec<Vec<Tally>>,
}

impl Tallies {
    /// The tallies of each site.
    pub fn parts(&self) -> Vec<&[Tally]> {
        self.of_site.iter().map(Vec::as_slice).collect()
    }
}

/// What a column of this kind holds, for a message.
fn content(kind: CellKind) -> &'static str {
    match kind {
        CellKind::Category => "texts",
        CellKind::Date => "dates",
        CellKind::Boolean => "yes and no",
        CellKind::Number => "numbers",
    }
}

/// The encoding of the columns of all sites, sorted by client; `None` where all hold numbers alone.
///
/// # Errors
/// The sites hold different things in a column, do different things with missing cells, or do not tell what is needed.
pub(super) fn encoding(sites: &[&Description]) -> Result<Option<(Encoding, Tallies)>, Disagreement> {
    if sites.iter().all(|site| site.columns.is_none()) {
        return Ok(None);
    }
    let places: Vec<Vec<usize>> = sites.iter().map(|site| places(site, sites[0])).collect();
    let kind = |site: usize, column: usize| match &sites[site].columns {
        Some(told) => told.kinds[places[site][column]],
        None => CellKind::Number,
    };
    let mut kinds = Vec::with_capacity(sites[0].width);
    for column in 0..sites[0].width {
        // Beside numbers, which are scaled, none of these is the same feature, nor does it read the same new rows.
        for (own, key) in
            [(CellKind::Category, "categorical"), (CellKind::Date, "date"), (CellKind::Boolean, "boolean")]
        {
            let (with, without): (Vec<usize>, Vec<usize>) =
                (0..sites.len()).partition(|site| kind(*site, column) == own);
            if let (Some(with), Some(without)) = (with.first(), without.first()) {
                let (what, found) = (content(own), content(kind(*without, column)));
                let (holder, other) = (sites[*with].called(), sites[*without].called());
                let column = sites[0].column(column);
                return Err(Disagreement::Kinds { what, key, holder, found, other, column });
            }
        }
        kinds.push(kind(0, column));
    }
    let those = |are: &dyn Fn(&Description) -> bool| -> Vec<usize> {
        (0..sites.len()).filter(|site| are(sites[*site])).collect()
    };
    let silent = those(&is_silent_about_texts);
    if !silent.is_empty() {
        return Err(Disagreement::NoCategories { sites: these(sites, &silent) });
    }
    let missing = missing(sites)?;
    let silent = those(&|site| site.sums.is_none());
    if missing.is_filled() && !silent.is_empty() {
        return Err(Disagreement::NoMeans { sites: these(sites, &silent), word: missing.word() });
    }
    let of_site = sites.iter().zip(&places);
    let tallies =
        |(site, places): (&&Description, &Vec<usize>)| places.iter().map(|column| tally(site, *column)).collect();
    let tallies = Tallies { of_site: of_site.map(tallies).collect() };
    let encoding = Encoding::learn(sites[0].features.as_deref(), &kinds, &tallies.parts(), missing);
    match encoding.width() {
        0 => Err(Disagreement::NoFeature),
        _ => Ok(Some((encoding, tallies))),
    }
}

/// Whether a site has a column of texts and tells none.
fn is_silent_about_texts(site: &Description) -> bool {
    let told = site.columns.as_ref();
    told.is_some_and(|told| told.texts.is_none() && told.kinds.contains(&CellKind::Category))
}

/// What becomes of missing cells: what the sites say that fill them.
fn missing(sites: &[&Description]) -> Result<Missing, Disagreement> {
    let told = |site: &&&Description| site.columns.as_ref().is_some_and(|told| told.missing.is_filled());
    let of = |site: &Description| site.columns.as_ref().map_or(Missing::Error, |told| told.missing);
    let Some(first) = sites.iter().find(told) else { return Ok(Missing::Error) };
    match sites.iter().filter(told).find(|site| of(site) != of(first)) {
        Some(other) => Err(Disagreement::Missing {
            first: first.called(),
            word: of(first).word(),
            other: other.called(),
            other_word: of(other).word(),
        }),
        None => Ok(of(first)),
    }
}

/// The column of each feature of client 0 at a site, which has the same names.
pub(super) fn places(site: &Description, first: &Description) -> Vec<usize> {
    let (Some(names), Some(own)) = (&first.features, &site.features) else { return (0..first.width).collect() };
    let places: HashMap<&str, usize> = own.iter().map(String::as_str).zip(0..).collect();
    names.iter().enumerate().map(|(at, name)| places.get(name.as_str()).copied().unwrap_or(at)).collect()
}

/// What a site tells of a column; without sums, the texts alone.
pub(super) fn tally(site: &Description, column: usize) -> Tally {
    let nothing = || ColumnSum { sum: ExactSum::default(), constant: None };
    let texts = site.columns.as_ref().and_then(|told| told.texts.as_ref()).map(|texts| texts[column].clone());
    let texts = texts.unwrap_or_default().into_iter().map(|text| (text, 0)).collect();
    match &site.sums {
        Some(sums) => match &sums.tallies {
            Some(tallies) => tallies[column].clone(),
            None => Tally { missing: 0, present: site.rows, sum: sums.features[column].clone(), texts },
        },
        None => Tally { missing: 0, present: site.rows, sum: nothing(), texts },
    }
}

/// A site's own cells as features in the agreed form, before they are scaled, and what is missing or unknown in them.
///
/// # Arguments
/// - `names`: the agreed names of the columns, if the files have headers.
///
/// # Errors
/// The encoding is not consistent, or it has other columns or other kinds of them.
pub(super) fn features(
    holder: Holder,
    (own, own_columns): (&Dataset, &Columns),
    names: Option<&[String]>,
    encoding: &Encoding,
) -> Result<Encoded, Misfit> {
    let misfit = |problem: String| Misfit::new(holder, problem);
    encoding.check().map_err(|problem| misfit(format!("what was agreed is not valid: {problem}")))?;
    let places = columns(holder, own, names, encoding.columns.len())?;
    for (column, place) in encoding.columns.iter().zip(&places) {
        let is_category = own_columns.kinds.get(*place) == Some(&CellKind::Category);
        if is_category != (column.kind == CellKind::Category) {
            let name =
                column.name.as_ref().map_or_else(|| format!("{place}, from 0,"), |name| format!("`{}`", quoted(name)));
            let (own, agreed) = if is_category { ("texts", "numbers") } else { ("numbers", "texts") };
            return Err(misfit(format!(
                "its column {name} holds {own}, all have agreed on {agreed} (data.categorical)"
            )));
        }
    }
    let texts = places.iter().enumerate().map(|(at, place)| (at, own_columns.texts_of(*place).to_vec())).collect();
    let cells = own.features.select(Axis(1), &places);
    encoding.apply(cells.view(), &texts).map_err(misfit)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use ndarray::array;

    use super::super::agree::agree;
    use super::super::config::SiteConfig;
    use super::super::describe::tests::{classes, rows, site};
    use super::super::describe::{describe, problems};
    use super::super::measure::measure;
    use super::super::rows::SiteRows;
    use super::*;
    use crate::site::{Means, Tell};

    /// Rows of a number, which may be missing, and of a ward.
    fn wards(print: &str, cells: ndarray::Array2<f32>, texts: &[&str], missing: Missing) -> SiteRows {
        let labels: Vec<usize> = (0..cells.nrows()).map(|row| row % 2).collect();
        let mut rows = rows(print, cells, &["dose", "ward"], classes(&labels, &["ill", "well"]));
        let texts = texts.iter().map(ToString::to_string).collect();
        rows.columns.kinds[1] = CellKind::Category;
        (rows.columns.texts, rows.columns.missing) = (BTreeMap::from([(1, texts)]), missing);
        rows
    }

    fn north(missing: Missing) -> SiteRows {
        wards("north", array![[1., 0.], [3., 1.], [f32::NAN, 0.]], &["west", "east"], missing)
    }

    fn south(missing: Missing) -> SiteRows {
        wards("south", array![[8., 1.], [8., f32::NAN]], &["unused", "attic"], missing)
    }

    fn told(rows: &SiteRows, index: usize) -> Description {
        let told = describe(&site(index), rows, 7);
        assert_eq!(told.check(), Ok(()));
        told
    }

    #[test]
    fn texts_of_all_sites_are_categories_and_means_are_over_all_rows() {
        let agreed = agree(&[told(&north(Missing::Indicator), 0), told(&south(Missing::Indicator), 1)]).unwrap();
        let encoding = agreed.encoding.unwrap();
        let names = ["dose", "dose is missing", "ward=attic", "ward=east", "ward=west", "ward is missing"];
        assert_eq!(encoding.names().unwrap(), names);
        // (1 + 3 + 8 + 8) / 4; one of four wards is the attic, one east, two west.
        assert_eq!(encoding.columns[0].fill.as_deref(), Some(&[5.0][..]));
        assert_eq!(encoding.columns[1].fill.as_deref(), Some(&[0.25, 0.25, 0.5][..]));
        assert_eq!(agreed.means.unwrap().features, [5.0, 0.2, 0.25, 0.25, 0.5, 0.2]);
    }

    #[test]
    fn sites_that_hold_or_do_other_things_are_named() {
        let message = |sites: &[Description]| agree(sites).unwrap_err().to_string();
        let numbers = rows("other", array![[1., 2.]], &["dose", "ward"], classes(&[0], &["ill", "well"]));
        assert_eq!(
            message(&[told(&north(Missing::Mean), 0), told(&numbers, 1)]),
            "Column `ward` holds texts at site `site-0` and numbers at site `site-1`; name it in data.categorical of all sites, or of none"
        );
        // Days since 1970 and the numbers of another site are no one feature, in whatever order the sites are.
        let of_kind = |print, kind| {
            let cells = array![[1., 0.], [3., 1.]];
            let mut rows = rows(print, cells, &["dose", "seen"], classes(&[0, 1], &["ill", "well"]));
            rows.columns.kinds[1] = kind;
            rows
        };
        let (dates, years) = (of_kind("dates", CellKind::Date), of_kind("years", CellKind::Number));
        let words = |dates, years| {
            format!(
                "Column `seen` holds dates at site `site-{dates}` and numbers at site `site-{years}`; name it in data.date of all sites, or of none"
            )
        };
        assert_eq!(message(&[told(&dates, 0), told(&years, 1)]), words(0, 1));
        assert_eq!(message(&[told(&years, 0), told(&dates, 1)]), words(1, 0));
        // Numbers are scaled and yes and no are not, and only a column of yes and no reads `yes` in new rows.
        let yes = of_kind("yes", CellKind::Boolean);
        let words = |yes, years| {
            format!(
                "Column `seen` holds yes and no at site `site-{yes}` and numbers at site `site-{years}`; name it in data.boolean of all sites, or of none"
            )
        };
        assert_eq!(message(&[told(&yes, 0), told(&years, 1)]), words(0, 1));
        assert_eq!(message(&[told(&years, 0), told(&yes, 1)]), words(1, 0));
        let both = agree(&[told(&yes, 0), told(&of_kind("no", CellKind::Boolean), 1)]).unwrap();
        assert_eq!(both.encoding.unwrap().columns[1].kind, CellKind::Boolean);
        assert_eq!(
            message(&[told(&north(Missing::Mean), 0), told(&south(Missing::Indicator), 1)]),
            "site `site-0` has data.missing = \"mean\", site `site-1` has \"indicator\"; sites that fill missing cells must fill them alike"
        );
        let mut silent = told(&south(Missing::Mean), 1);
        silent.sums = None;
        silent.products = false;
        assert!(
            message(&[told(&north(Missing::Mean), 0), silent])
                .contains("data.missing = \"mean\" needs the sums of all")
        );
        let tell = Tell { categories: false, ..site(1).tell };
        let secret = SiteConfig { tell, ..site(1) };
        let description = describe(&secret, &south(Missing::Mean), 7);
        assert!(!serde_json::to_string(&description).unwrap().contains("attic"));
        assert!(problems(&secret, &south(Missing::Mean), &description)[0].contains("tell.categories = false"));
        assert!(
            message(&[told(&north(Missing::Mean), 0), description])
                .ends_with("are not told (tell.categories = false) by site `site-1`")
        );
    }

    #[test]
    fn a_site_that_fills_no_cell_joins_those_that_do() {
        let numbers = rows("other", array![[1.], [3.]], &["dose"], classes(&[0, 1], &["ill", "well"]));
        let mut filled = rows("filled", array![[5.], [f32::NAN]], &["dose"], classes(&[0, 1], &["ill", "well"]));
        filled.columns.missing = Missing::Mean;
        let agreed = agree(&[told(&numbers, 0), told(&filled, 1)]).unwrap();
        assert_eq!(agreed.encoding.unwrap().columns[0].fill.as_deref(), Some(&[3.0][..]));
        assert_eq!(agreed.means.unwrap().features, [3.0]);
    }

    #[test]
    fn a_server_learns_no_texts_by_guessing_them() {
        let tell = Tell { categories: false, ..site(0).tell };
        let secret = SiteConfig { tell, ..site(0) };
        let agreed = agree(&[told(&north(Missing::Mean), 0)]).unwrap();
        let (means, encoding) = (agreed.means.unwrap(), agreed.encoding.unwrap());
        let ask = |site: &SiteConfig, means: &Means, encoding: Option<&Encoding>| {
            measure(site, &north(Missing::Mean), agreed.features.as_deref(), means, encoding).unwrap_err().problem
        };
        assert!(ask(&secret, &means, Some(&encoding)).contains("tell.categories"));
        assert!(ask(&site(0), &means, None).contains("was not told how they become features"));
        let few = Means { features: vec![0.0], target: None };
        assert!(ask(&site(0), &few, Some(&encoding)).contains("1 means for other features"));
        let mut other = encoding.clone();
        other.columns[1].kind = CellKind::Number;
        (other.columns[1].categories, other.columns[1].fill) = (Vec::new(), Some(vec![0.0]));
        let two = Means { features: vec![0.0, 0.0], target: None };
        let words = "its column `ward` holds texts, all have agreed on numbers (data.categorical)";
        assert_eq!(ask(&site(0), &two, Some(&other)), words);
        other.columns[0].fill = None;
        (other.columns[1].kind, other.columns[1].categories) = (CellKind::Category, vec!["east".into()]);
        assert_eq!(ask(&site(0), &two, Some(&other)), "a cell of column `dose` is missing");
        other.columns[0].fill = Some(vec![0.0, 1.0]);
        assert!(
            ask(&site(0), &two, Some(&other)).starts_with("what was agreed is not valid: column 0, from 0, has `fill`")
        );
    }

    #[test]
    fn counts_that_do_not_belong_to_the_rows_are_refused() {
        let good = serde_json::to_value(told(&north(Missing::Mean), 0)).unwrap();
        for (place, value, words) in [
            ("/columns/kinds", serde_json::json!(["number"]), "`columns.kinds` has 1 entries"),
            ("/columns/texts/1", serde_json::json!(["west", "east"]), "`columns.texts` are not in order"),
            ("/columns/texts/0", serde_json::json!(["x"]), "`number of texts of a column` is 1"),
            ("/columns/texts/1", serde_json::json!(["east"]), "`sums.tallies`: the texts of a column are others"),
            ("/sums/tallies/0/missing", serde_json::json!(2), "`sums.tallies`: the cells of a column are not the rows"),
            ("/sums/tallies/0/missing", serde_json::json!(u64::MAX), "`sums.tallies`: the cells of a column"),
            ("/sums/tallies/1/texts/east", serde_json::json!(2), "`sums.tallies`: the texts of a column are others"),
            ("/sums/tallies/0/texts", serde_json::json!({"x": 1}), "`sums.tallies`: texts of a column of numbers"),
            ("/sums/tallies/1/sum/sum", serde_json::json!([1.0]), "`sums.tallies`: a sum of texts"),
            ("/sums/tallies/0/sum/constant", serde_json::json!(1.0), "`constant` of a column"),
            ("/sums/tallies", serde_json::json!(null), "`sums.tallies` must be there with `columns` alone"),
        ] {
            let mut changed = good.clone();
            *changed.pointer_mut(place).unwrap() = value;
            let read: Description = serde_json::from_value(changed).unwrap();
            let message = read.check().unwrap_err();
            assert!(message.starts_with(words), "{place}: {message}");
        }
    }
}
