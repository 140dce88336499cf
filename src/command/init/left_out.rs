//! The study that `fedstein init --study` writes beside the config of a table with clients: does the model hold at a client
//! that takes no part in the training?

use toml::Value;

use super::choice::Choice;
use crate::reproduce::verdict::ENOUGH_SEEDS;

/// The number of clients up to which each is left out in turn.
const MOST: usize = 30;
/// The number of clients from which on one can be left out of a federation.
const FEWEST: usize = 3;
/// The number of rows of a client below which its scores say little.
const FEW_ROWS: usize = 30;

/// The text of the study; `None` for a table without clients, or with too few or too many of [`FEW_ROWS`] rows.
///
/// # Arguments
/// - `base`: the name of the config's file, which is in the same directory.
pub fn of_config(base: &str, choice: &Choice<'_>) -> Option<String> {
    let clients = choice.client?.values.as_ref()?;
    let large: Vec<&String> = clients.iter().filter(|(_, rows)| **rows >= FEW_ROWS).map(|(name, _)| name).collect();
    if clients.len() < FEWEST || large.is_empty() || large.len() > MOST {
        return None;
    }
    let names = large.iter().map(|name| Value::String((*name).clone()));
    let small = match clients.len() - large.len() {
        0 => String::new(),
        1 => {
            format!("\n# One client has fewer than {FEW_ROWS} rows, of which scores say little: it always takes part.")
        }
        more => format!(
            "\n# {more} clients have fewer than {FEW_ROWS} rows, of which scores say little: they always take part."
        ),
    };
    let unlabelled = match choice.target.missing {
        0 => "",
        _ => "\n# A client whose rows all lack the target has none to be scored: take it out of the list.",
    };
    let pooled = match large.len() {
        ENOUGH_SEEDS.. => {
            "pooled = \"left_out\"  # the tables have means over all of them, and where another client would lie\n"
        }
        _ => "",
    };
    Some(format!(
        "# Does the model hold at a client that takes no part? Each in turn is left out of the training, and its rows alone\n\
         # are the test rows, with three seeds.{small}{unlabelled}\n\
         # The scores are in studies/NAME-left-out/table.md. All keys of a study are in docs/study.md.\n\
         \n\
         title = \"At a client that takes no part\"\n\
         base = {base}\n\
         seeds = 3\n{metrics}{pooled}\
         \n\
         [vary.left_out]\n\
         key = \"data.leave_out\"\n\
         values = {names}\n",
        base = Value::String(base.to_owned()),
        metrics = choice.metrics_of_study(),
        names = Value::Array(names.collect()),
    ))
}
