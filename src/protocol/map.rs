//! A fitted map of probabilities as an array of a request.

use super::calibrating::MAP;
use super::message::Message;
use crate::array::{Array, Values};
use crate::error::RunError;
use crate::report::maps::{GRID, IsotonicMap, MOST_CLASSES, MapKind, ProbabilityMap, VectorMap, isotonic_functions};

/// The array of a map; `None` for a temperature, which is in the form of a question.
pub fn map_array(map: &ProbabilityMap) -> Option<Array> {
    let (shape, values) = match map {
        ProbabilityMap::Temperature(_) => return None,
        ProbabilityMap::Vector(map) => (vec![2, map.scale.len()], map.numbers()),
        ProbabilityMap::Isotonic(map) => {
            let of_function = |(function, corners): (usize, &Vec<(f64, f64)>)| {
                corners.iter().map(move |(x, y)| [function as f64, *x, *y]).collect::<Vec<_>>()
            };
            let corners: Vec<[f64; 3]> = map.corners().iter().enumerate().flat_map(of_function).collect();
            (vec![corners.len(), 3], corners.concat())
        }
    };
    Some(Array { shape, values: Values::F64(values) })
}

/// The map of a request about predictions of so many classes, at least 2.
///
/// # Arguments
/// * `temperature`: that of the question, where it has one
/// * `kind`: that of the question; `None` for the temperature
///
/// # Errors
/// The array is missing, or is no map of this kind.
pub fn map_of(
    message: &Message,
    (temperature, kind): (Option<f64>, Option<MapKind>),
    classes: usize,
) -> Result<Option<ProbabilityMap>, RunError> {
    let Some(kind) = kind else { return Ok(temperature.map(ProbabilityMap::Temperature)) };
    let Array { shape, values } = message.array(MAP)?;
    let is_of_kind = match kind {
        MapKind::Vector => shape[..] == [2, classes],
        MapKind::Isotonic => matches!(shape[..], [_, 3]),
    };
    if !is_of_kind {
        return Err(RunError::Config(format!("\"{MAP}\" of the request is {shape:?}, not the array of such a map")));
    }
    if classes > MOST_CLASSES || values.len() > 3 * classes * GRID {
        return Err(RunError::Config(format!("\"{MAP}\" of the request is larger than a map of {classes} classes")));
    }
    let values = values.to_f64();
    let map = match kind {
        MapKind::Vector => VectorMap::of(&values, classes).map(ProbabilityMap::Vector),
        MapKind::Isotonic => {
            let mut corners = vec![Vec::new(); isotonic_functions(classes)];
            for [function, x, y] in values.as_chunks::<3>().0 {
                // A number that is no whole one would be rounded to another function.
                let at = (*function >= 0.0 && function.fract() == 0.0).then_some(*function as usize);
                match at.and_then(|at| corners.get_mut(at)) {
                    Some(corners) => corners.push((*x, *y)),
                    None => {
                        let reason = format!("\"{MAP}\" of the request has a function {function} of {classes} classes");
                        return Err(RunError::Config(reason));
                    }
                }
            }
            IsotonicMap::of(corners, classes).map(ProbabilityMap::Isotonic)
        }
    };
    map.map(Some).map_err(RunError::Predictions)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_is_read_as_it_was_written() {
        let vector = VectorMap { scale: vec![1.5, 0.5, 1.0], bias: vec![0.0, -0.25, 0.25] };
        let corners = vec![vec![(0.25, 0.125), (0.5, 0.75)], vec![(0.5, 0.5)], vec![(0.1, 0.2), (0.2, 0.2)]];
        let isotonic = IsotonicMap::of(corners, 3).unwrap();
        for map in [ProbabilityMap::Vector(vector), ProbabilityMap::Isotonic(isotonic)] {
            let message = Message::default().with_array(MAP, map_array(&map).unwrap());
            assert_eq!(map_of(&message, (None, map.kind()), 3).unwrap().as_ref(), Some(&map));
            assert!(map_of(&message, (None, map.kind()), 2).is_err());
        }
        for function in [0.5, -1.0, f64::NAN, 3.0, 1e300] {
            let values = Values::F64([[function, 0.1, 0.2], [1.0, 0.1, 0.2], [2.0, 0.1, 0.2]].concat());
            let message = Message::default().with_array(MAP, Array { shape: vec![3, 3], values });
            let error = map_of(&message, (None, Some(MapKind::Isotonic)), 3).unwrap_err().to_string();
            assert!(error.contains(&format!("a function {function} of 3 classes")), "{error}");
        }
        for (kind, shape) in [(MapKind::Isotonic, vec![7]), (MapKind::Isotonic, vec![1, 7]), (MapKind::Vector, vec![6])]
        {
            let values = Values::F64(vec![1.0; shape.iter().product()]);
            let message = Message::default().with_array(MAP, Array { shape, values });
            let error = map_of(&message, (None, Some(kind)), 3).unwrap_err().to_string();
            assert!(error.contains("not the array of such a map"), "{error}");
        }
        assert_eq!(map_array(&ProbabilityMap::Temperature(2.0)), None);
        let at_two = map_of(&Message::default(), (Some(2.0), None), 3).unwrap();
        assert_eq!(at_two, Some(ProbabilityMap::Temperature(2.0)));
        assert!(map_of(&Message::default(), (None, Some(MapKind::Vector)), 3).is_err());
    }
}
