//! The section on classes that are taken for one another.

use super::*;

/// `classes` classes with two rows each: one right, one taken for the next class with a confidence of 0.6.
fn of(classes: usize) -> ClassPredictions<'static> {
    let (mut labels, mut probabilities) = (Vec::new(), Vec::new());
    for label in 0..classes {
        for predicted in [label, (label + 1) % classes] {
            labels.push(label);
            let rest = 0.4 / (classes - 1) as f64;
            probabilities.extend((0..classes).map(|class| if class == predicted { 0.6 } else { rest }));
        }
    }
    ClassPredictions::new(labels, classes, probabilities).unwrap()
}

fn rendered(predictions: &ClassPredictions<'_>) -> (Rendered, Value) {
    let rendered = render(&report(predictions, None)).unwrap();
    let json = serde_json::from_str(&rendered.json).unwrap();
    (rendered, json)
}

#[test]
fn few_classes_have_the_matrix_and_the_pairs() {
    let (rendered, json) = rendered(&of(4));
    assert_eq!(json["confusion"]["counts"], json!([[1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1], [1, 0, 0, 1]]));
    let first = &json["confusion"]["pairs"][0];
    assert_eq!((&first["label"], &first["predicted"], &first["n"]), (&json!(0), &json!(1), &json!(1)));
    assert!((first["confidence"].as_f64().unwrap() - 0.6).abs() < 1e-15 && first["share"] == 0.5);
    assert!(rendered.confusion.unwrap().contains("Class of the rows by predicted class"));
    assert!(rendered.html.contains("<td>3</td><td>0</td><td>1</td><td>50.0\u{a0}%"));
    assert_eq!(
        rendered.confusion_table.unwrap(),
        "label,predicted,n\n0,0,1\n0,1,1\n1,1,1\n1,2,1\n2,2,1\n2,3,1\n3,0,1\n3,3,1\n"
    );
}

#[test]
fn many_classes_have_only_the_most_confused_pairs_on_the_page() {
    let (rendered, json) = rendered(&of(30));
    assert!(json["confusion"]["counts"].is_null() && rendered.confusion.is_none());
    assert_eq!(json["confusion"]["pairs"].as_array().unwrap().len(), 20);
    assert_eq!(json["confusion"]["all_pairs"], 30);
    assert!(rendered.html.contains("The 20 pairs of classes with the most confused rows, of 30:"));
    assert_eq!(rendered.confusion_table.unwrap().lines().count(), 61);
}

#[test]
fn without_a_mistake_no_class_is_taken_for_another() {
    let right = ClassPredictions::new(vec![0, 1, 2], 3, [[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]].concat());
    let (rendered, json) = rendered(&right.unwrap());
    assert_eq!(json["confusion"]["pairs"], json!([]));
    assert!(rendered.html.contains("No row is predicted as another class."));
}

#[test]
fn two_classes_have_no_matrix() {
    let two = ClassPredictions::new(vec![0, 1], 2, vec![0.8, 0.2, 0.6, 0.4]).unwrap();
    let (rendered, json) = rendered(&two);
    assert!(json.get("confusion").is_none() && rendered.confusion_table.is_none());
}
