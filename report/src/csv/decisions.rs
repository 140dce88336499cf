//! Thresholds and confusions as tables.

use std::fmt::Write as _;

use super::cell;
use crate::metrics::{Confusion, ThresholdRow};

/// The thresholds as a table with the fields of `binary.thresholds` in `report.json`; a share without rows is blank.
pub(crate) fn thresholds_csv(rows: &[ThresholdRow]) -> String {
    let mut text = String::from(
        "threshold,true_positives,false_positives,false_negatives,true_negatives,sensitivity,specificity,ppv,npv,\
         net_benefit,net_benefit_lo,net_benefit_hi,net_benefit_all\n",
    );
    for row in rows {
        let (lo, hi) = row.net_benefit_interval.map_or((None, None), |of| (Some(of.lo), Some(of.hi)));
        let [sensitivity, specificity, ppv, npv] = [row.sensitivity, row.specificity, row.ppv, row.npv].map(cell);
        let _ = writeln!(
            text,
            "{},{},{},{},{},{sensitivity},{specificity},{ppv},{npv},{},{},{},{}",
            row.threshold,
            row.true_positives,
            row.false_positives,
            row.false_negatives,
            row.true_negatives,
            row.net_benefit,
            cell(lo),
            cell(hi),
            row.net_benefit_all
        );
    }
    text
}

/// The confusion matrix as a table `label,predicted,n` of the pairs with rows, by the indices of the classes.
pub(crate) fn confusion_csv(of: &Confusion) -> String {
    let mut text = String::from("label,predicted,n\n");
    for (label, row) in of.rows().enumerate() {
        for (predicted, n) in row.iter().enumerate().filter(|(_, n)| **n > 0) {
            let _ = writeln!(text, "{label},{predicted},{n}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::{ClassPredictions, threshold_table};

    #[test]
    fn what_has_no_value_is_blank() {
        let predictions = ClassPredictions::new(vec![0, 1], 2, vec![0.75, 0.25, 0.5, 0.5]).unwrap();
        let text = thresholds_csv(&threshold_table(&predictions, &[0.8]).unwrap());
        assert!(text.ends_with("\n0.8,0,0,1,1,0,1,,0.5,0,,,-1.5000000000000004\n"), "{text}");
        let header = text.lines().next().unwrap();
        assert_eq!(header.matches(',').count(), text.lines().nth(1).unwrap().matches(',').count());
        assert_eq!(confusion_csv(&Confusion::of(&predictions)), "label,predicted,n\n0,0,1\n1,0,1\n");
    }
}
