//! `report.json`. A number without a value is null; NaN and infinities cannot occur in JSON.

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::analysis::Analysis;
use crate::definitions::{self, Definition};
use crate::error::ReportError;
use crate::report::Report;

/// Version of the layout of `report.json`.
pub const SCHEMA_VERSION: u32 = 1;

/// The report as indented JSON with a newline at the end.
pub(super) fn render(report: &Report<'_>, analysis: &Analysis) -> Result<String, ReportError> {
    let mut root = Map::new();
    root.insert("schema_version".into(), json!(SCHEMA_VERSION));
    root.insert("title".into(), json!(report.title));
    match analysis {
        Analysis::Classification(analysis) => {
            fill(&mut root, "classification", analysis.as_ref(), &definitions::of_classes())?
        }
        Analysis::Regression(analysis) => fill(&mut root, "regression", analysis.as_ref(), &definitions::of_targets())?,
    }
    root.insert("seed".into(), json!(report.seed));
    if let Some(run) = &report.run {
        let mut value = serde_json::to_value(run)?;
        let facts: Map<String, Value> = run.facts.iter().map(|(name, fact)| (name.clone(), json!(fact))).collect();
        value["facts"] = Value::Object(facts);
        root.insert("run".into(), value);
    }
    let mut text = serde_json::to_string_pretty(&root)?;
    text.push('\n');
    Ok(text)
}

fn fill(
    root: &mut Map<String, Value>,
    task: &str,
    analysis: &impl Serialize,
    definitions: &[Definition],
) -> Result<(), ReportError> {
    root.insert("task".into(), json!(task));
    let meanings: Map<String, Value> = definitions.iter().map(|d| (d.key.to_owned(), Value::from(d.meaning))).collect();
    root.insert("definitions".into(), Value::Object(meanings));
    if let Value::Object(fields) = serde_json::to_value(analysis)? {
        root.extend(fields);
    }
    Ok(())
}
