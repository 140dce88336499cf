//! The program as its user meets it: the binary, in a directory of its own, with real files and exit codes.
//! One binary for all of it, because linking is what costs.

mod cli {
    mod backends;
    mod bad_input;
    mod bench;
    mod data;
    mod place;
    mod predict;
    mod report;
    mod reproduce;
    mod train;
}
