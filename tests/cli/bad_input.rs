//! Mistakes in arguments, configs and data files: each is refused with a message that helps to correct it, and leaves
//! no files.

use super::place::{Mnist, Place, TINY, gzip, idx, pets, prices};

/// The message with which `TINY` with these arguments is refused.
#[track_caller]
fn refused(words: &str, with: &[&str]) {
    Place::new().refuses(&format!("{TINY} --out run {words}"), with);
}

// Mistakes in the config.

#[test]
fn an_unknown_key_is_refused_with_the_nearest() {
    refused(
        "--set algorithm.particels=3",
        &["unknown key `algorithm.particels`", "did you mean `algorithm.particles`?"],
    );
    refused("--set particles=3", &["unknown key `particles`", "`algorithm.particles`"]);
    refused("--set algoritm.particles=3", &["unknown section [algoritm]", "did you mean [algorithm]?"]);
    let place = Place::new();
    place.write("mine.toml", "rounds = 2\n\n[algorithm]\nparticels = 3\n");
    let words = ["mine.toml, line 4", "unknown key `algorithm.particels`", "did you mean `algorithm.particles`?"];
    place.refuses("train mine.toml --out run", &words);
    place.write("mine.toml", "[algoritm]\nparticles = 3\n");
    place.refuses("train mine.toml", &["mine.toml, line 1", "unknown section [algoritm]", "did you mean [algorithm]?"]);
}

#[test]
fn keys_that_conflict_with_each_other_or_with_the_rows_are_refused_with_their_lines() {
    let place = Place::new();
    place.write("mine.toml", "[algorithm]\nkind = \"dsvgd\"\n[schedule]\nclients = 3\n[partition]\nclients = 4\n");
    place.refuses("train mine.toml", &["mine.toml, lines 2 and 4: algorithm kind `dsvgd` moves one client a round"]);
    place.refuses("train mine.toml --set schedule.clients=2", &["mine.toml, line 2 and --set: algorithm kind `dsvgd`"]);
    place.write("mine.toml", "[data]\ntest_fraction = 0.5\n[partition]\nclients = 4000\n");
    place.refuses("train mine.toml", &["mine.toml, line 4: partition.clients = 4000: there are only"]);
    place.write("mine.toml", "[partition]\nkind = \"label-ratio\"\nclients = 2\n");
    place.refuses("train mine.toml", &["mine.toml, line 2: partition kind `label-ratio`: it mixes two classes"]);
    place.write("table.csv", "a,b,y\n1,2,x\n2,1,z\n");
    place.write("mine.toml", "[data]\nkind = \"csv\"\npath = \"table.csv\"\ntarget = \"z\"\n");
    place.refuses("train mine.toml", &["mine.toml, line 4: ", "table.csv: no column `z` (data.target)"]);
    assert_eq!(place.names("."), ["mine.toml", "table.csv"]);
}

#[test]
fn a_value_of_the_wrong_type_is_refused_with_the_expected_type() {
    refused("--set rounds=two", &["`rounds` cannot be \"two\"", "a whole number"]);
    refused("--set algorithm.particles=2.5", &["`algorithm.particles` cannot be 2.5", "a whole number"]);
    refused("--set algorithm.particles=\"5\"", &["`algorithm.particles` cannot be \"5\"", "a whole number"]);
    refused("--set model.hidden=50", &["`model.hidden` cannot be 50", "a list of whole numbers"]);
    refused("--set optimizer.lr=fast", &["`optimizer.lr` cannot be \"fast\"", "a number greater than 0"]);
    refused("--set algorithm=fedavg", &["`algorithm` is a section", "`algorithm.kind = "]);
    refused("--set rounds", &["--set takes `key=value`", "`rounds` has no `=`"]);
    let place = Place::new();
    place.write("mine.toml", "rounds = true\n");
    place.refuses("train mine.toml --out run", &["mine.toml, line 1", "`rounds` cannot be true", "a whole number"]);
}

#[test]
fn numbers_out_of_range_are_refused_with_the_range() {
    refused("--set algorithm.particles=0", &["`algorithm.particles` cannot be 0", "from 1 to"]);
    refused("--set partition.clients=0", &["`partition.clients` cannot be 0", "from 1 to"]);
    refused("--set rounds=0", &["`rounds` cannot be 0", "from 1 to"]);
    refused("--set algorithm.batch=-5", &["`algorithm.batch` cannot be -5", "from 1 to"]);
    refused("--set optimizer.lr=nan", &["`optimizer.lr` cannot be nan", "greater than 0"]);
    refused("--set data.test_fraction=1.0", &["`data.test_fraction` cannot be 1.0", "less than 1"]);
    refused("--set seed=-1", &["`seed` cannot be -1", "at least 0"]);
    refused("--seed=-1", &["--seed", "-1"]);
}

#[test]
fn more_clients_than_rows_are_refused_with_both_numbers() {
    refused("--set partition.clients=2000", &["partition.clients = 2000", "only 1438 training rows"]);
    refused("--set data.train_limit=5", &["partition.clients = 10", "only 5 training rows"]);
    for kind in ["labels-per-client", "dirichlet"] {
        let words = ["partition.clients = 1439", "only 1438 training rows"];
        refused(&format!("--set partition.kind={kind} --set partition.clients=1439"), &words);
    }
    let words = ["partition.clients = 161", "only 160 training rows"];
    refused(
        "--set data.kind=twonorm --set data.rows=200 --set partition.kind=label-ratio --set partition.clients=161",
        &words,
    );
}

#[test]
fn an_unknown_kind_is_refused_with_the_nearest_and_the_list() {
    refused("--set data.kind=mnsit", &["`data.kind` cannot be \"mnsit\"", "did you mean `mnist`?", "`covertype`"]);
    refused("--set model.kind=bn", &["`model.kind` cannot be \"bn\"", "did you mean `bnn`?", "`blr`"]);
    refused("--set algorithm.kind=dsvdg", &["\"dsvdg\"", "did you mean `dsvgd`?", "`fedavg`"]);
    refused("--set kernel.kind=rbff", &["\"rbff\"", "did you mean `rbf`?", "`imq`"]);
}

#[test]
fn a_key_of_another_kind_is_refused_with_the_kinds_that_use_it() {
    let place = Place::new();
    let fedavg = "train --set algorithm.kind=fedavg --set algorithm.particles=4";
    place.refuses(
        fedavg,
        &["`algorithm.particles` is not used by algorithm kind `fedavg`", "`dsvgd`, `newton-dsvgd`, `u-dsvgd`"],
    );
    refused("--set data.path=x.csv", &["`data.path` is not used by data kind `digits`", "`csv`"]);
    place.write("mine.toml", "[model]\nkind = \"blr\"\nhidden = [5]\n[data]\nkind = \"twonorm\"\n");
    let words = ["mine.toml, line 3", "`model.hidden` is not used by model kind `blr`", "`bnn`"];
    place.refuses("train mine.toml", &words);
}

#[test]
fn kinds_that_do_not_go_together_are_refused_with_both() {
    refused("--set model.kind=blr", &["`blr` tells two classes apart", "`digits` has ten", "`bnn`"]);
    refused("--set model.kind=mixture", &["`mixture`", "`digits`"]);
    refused("--set data.kind=waveform --set data.rows=50 --set model.kind=blr", &["blr", "`waveform` has 3", "bnn"]);
    refused("--set partition.kind=by-column", &["`by-column`", "`data.client_column`"]);
    refused("--set partition.kind=label-ratio", &["`label-ratio`", "two classes", "have 10"]);
    refused(
        "--set algorithm.kind=dsvgd --set schedule.clients=3",
        &["`dsvgd` moves one client a round", "`schedule.clients` is 3"],
    );
    refused("--set data.normalise=published", &["data.normalise = published", "mnist", "`digits`"]);
}

#[test]
fn a_precision_of_messages_that_does_not_exist_or_does_not_fit_is_refused_with_those_that_do() {
    for word in ["f8", "half", "16", "F16"] {
        let words = ["`federation.wire` cannot be", "`full`", "`f32`", "`f16`", "`bf16`"];
        refused(&format!("--set federation.wire={word}"), &words);
    }
    let place = Place::new();
    let train = "train --out run --set";
    let words = ["`federation.wire` = \"f16\"", "`svgd` has all rows in one place", "\"full\""];
    place.refuses(&format!("{train} algorithm.kind=svgd --set federation.wire=f16"), &words);
    let words = ["`federation.wire` = \"bf16\"", "natural parameters", "`pvi`", "\"full\" or \"f32\""];
    place.refuses(&format!("{train} algorithm.kind=pvi --set federation.wire=bf16"), &words);
}

#[cfg(not(feature = "flower"))]
#[test]
fn a_command_that_this_build_has_not_says_how_to_build_it() {
    let line = "supernode --superlink 127.0.0.1:9092 --insecure --site site.toml";
    Place::new().refuses(line, &["was built without Flower's node", "--features flower"]);
}

#[test]
fn a_config_that_cannot_be_read_is_named() {
    let place = Place::new();
    place.refuses("train gone.toml", &["`gone.toml`", "(os error 2)"]);
    place.refuses("train .", &["`.`", "directory"]);
    place.write("mine.toml", "rounds = = 2\n");
    place.refuses("train mine.toml", &["mine.toml, line 1, column", "not valid TOML"]);
    place.write("mine.toml", [0xff, 0xfe, 0x00]);
    place.refuses("train mine.toml", &["`mine.toml`", "UTF-8"]);
}

#[test]
fn unknown_commands_and_options_are_refused_with_the_nearest() {
    let place = Place::new();
    place.refuses("trian", &["'trian'", "'train'"]);
    place.refuses("train --sett rounds=2", &["'--sett'", "'--set'"]);
    place.refuses("train --quiet --json", &["--quiet", "--json"]);
    // With too few arguments, the help lists the commands.
    for line in ["", "data"] {
        let output = place.command(line).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        assert!(String::from_utf8_lossy(&output.stderr).contains("Usage: fedstein"));
    }
}

// Mistakes with the output directory.

#[test]
fn an_output_directory_that_exists_is_refused_unless_it_is_empty() {
    let place = Place::new();
    place.write("full/mine.txt", "x");
    let train = format!("{TINY} --quiet");
    place.refuses(&format!("{train} --out full"), &["`full`", "exists and is not empty", "--out", "--force"]);
    place.refuses(&format!("{train} --out full --force"), &["--force", "`full`", "`mine.txt`"]);
    place.refuses(&format!("{train} --out full/mine.txt"), &["`full/mine.txt`", "a file of this name exists"]);
    place.refuses(&format!("{train} --out full/mine.txt/run"), &["full/mine.txt", "a file of this name exists"]);
    std::fs::create_dir(place.path("empty")).unwrap();
    // A run that is refused or fails does not change the directory; one that succeeds writes its files there.
    place.refuses(&format!("{train} --out empty --set partition.clients=5000"), &["5000"]);
    place.fails(&format!("{train} --out empty --set optimizer.lr=1e30"), &["optimizer.lr"]);
    place.works(&format!("{train} --out empty"));
    assert!(place.names("empty").contains(&"report".to_owned()));
}

/// Nothing can be made in `/proc`, not even by root.
#[cfg(target_os = "linux")]
#[test]
fn an_output_that_cannot_be_written_is_refused_with_the_option_and_the_path_before_work_begins() {
    let place = Place::new();
    let rows: String = (0..60).map(|row| format!("{},{}\n", row % 7, ["tin", "gold"][row % 2])).collect();
    let text = format!("weight,metal\n{rows}");
    place.write("coins.csv", &text).write("more.csv", &text);
    let data = "--set data.kind=csv --set data.path=coins.csv --set data.target=metal --set partition.clients=2";
    place.write("s.toml", "seeds = 1\n[vary.clients]\nkey = \"partition.clients\"\nvalues = [2, 4]\n");
    place.works(&format!("{TINY} --quiet {data} --out run"));
    for line in [
        &format!("{TINY} --quiet {data}"),
        "predict run --input more.csv",
        "evaluate run --input more.csv",
        "init coins.csv",
        "site init coins.csv --index 0",
        "report run",
        "report run --force",
        "study s.toml",
    ] {
        let message = place.refuses(&format!("{line} --out /proc/new"), &["--out", "`/proc/new` cannot be ", "choose"]);
        assert!(!message.contains(".fedstein") && !message.contains(".tmp"), "{line}: {message}");
    }
}

// Files of images and labels.

fn mnist_refused(mnist: &Mnist, words: &[&str]) {
    let place = Place::new();
    mnist.write(&place, "sets");
    let line = format!("{TINY} --set data.kind=mnist --set partition.clients=3 --data-dir sets --out run");
    place.refuses(&line, words);
}

const IMAGES: &str = "train-images-idx3-ubyte";
const LABELS: &str = "train-labels-idx1-ubyte";

#[test]
fn small_idx_files_train_with_gzip_and_without() {
    let place = Place::new();
    let mut packed = Mnist::new();
    Mnist::new().write(&place, "plain");
    for name in [IMAGES, LABELS, "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"] {
        let bytes = gzip(packed.file(name));
        packed = packed.without(name).with(&format!("{name}.gz"), bytes);
    }
    packed.write(&place, "packed");
    for sets in ["plain", "packed"] {
        let line = format!("{TINY} --set data.kind=mnist --set partition.clients=3 --data-dir {sets} --out {sets}-run");
        place.works(&format!("{line} --quiet"));
    }
    assert!(place.bytes("plain-run/particles.safetensors") == place.bytes("packed-run/particles.safetensors"));
}

#[test]
fn a_missing_data_set_is_refused_with_its_path_and_how_to_get_it() {
    for file in [IMAGES, "t10k-labels-idx1-ubyte"] {
        let words = [&format!("sets/mnist/{file}"), "`fedstein data fetch mnist`", "--data-dir"];
        mnist_refused(&Mnist::new().without(file), &words);
    }
    for set in ["fashion-mnist", "covertype"] {
        let words = [&format!("nowhere/{set}/"), &format!("`fedstein data fetch {set}`") as &str, "--data-dir"];
        refused(&format!("--set data.kind={set} --data-dir nowhere"), &words);
    }
}

#[test]
fn a_truncated_idx_file_is_refused_with_its_length() {
    let whole = Mnist::new().file(IMAGES).to_vec();
    let words = [IMAGES, "truncated", "480 data bytes (30 x 4 x 4)", "there are 84"];
    mnist_refused(&Mnist::new().with(IMAGES, &whole[..100]), &words);
    mnist_refused(&Mnist::new().with(IMAGES, &whole[..10]), &[IMAGES, "truncated", "within the header"]);
    mnist_refused(&Mnist::new().with(IMAGES, []), &[IMAGES, "truncated", "within the header"]);
    mnist_refused(&Mnist::new().with(IMAGES, [&whole[..], &[0]].concat()), &[IMAGES, "trailing bytes"]);
}

#[test]
fn a_wrong_magic_number_is_refused_with_what_it_may_mean() {
    let mnist = Mnist::new();
    let (images, labels) = (mnist.file(IMAGES).to_vec(), mnist.file(LABELS).to_vec());
    let words = [IMAGES, "wrong idx magic number 0x00000801, expected 0x00000803", "swapped"];
    mnist_refused(&mnist.with(IMAGES, labels).with(LABELS, images), &words);
    let words = [IMAGES, "wrong idx magic number 0x6c616265", "not an idx file"];
    mnist_refused(&Mnist::new().with(IMAGES, b"label,pixel\n"), &words);
}

#[test]
fn a_header_that_claims_2_to_the_31_items_is_refused_without_the_memory_for_them() {
    let images = idx(0x803, &[1 << 31, 28, 28], &[1; 100]);
    let words = [IMAGES, "2147483648 x 28 x 28", "the header is damaged"];
    mnist_refused(&Mnist::new().with(IMAGES, images.clone()), &words);
    mnist_refused(&Mnist::new().without(IMAGES).with(&format!("{IMAGES}.gz"), gzip(&images)), &words);
    let labels = idx(0x801, &[1 << 31], &[1; 100]);
    mnist_refused(&Mnist::new().with(LABELS, labels), &[LABELS, "2147483648 data bytes", "there are 100"]);
}

#[test]
fn damaged_gzip_is_reported() {
    let packed = gzip(Mnist::new().file(IMAGES));
    let mut flipped = packed.clone();
    flipped[200] ^= 0xff;
    let name = format!("{IMAGES}.gz");
    for bytes in [&flipped, &packed[..packed.len() - 20], &packed[..5]] {
        mnist_refused(&Mnist::new().without(IMAGES).with(&name, bytes), &[&name, "damaged gzip"]);
    }
}

#[test]
fn labels_that_do_not_belong_to_the_images_are_refused() {
    let labels = |last: u8| idx(0x801, &[30], &[[0; 29].as_slice(), &[last]].concat());
    let words = [LABELS, "row 30", "label 10 is out of range", "0 to 9"];
    mnist_refused(&Mnist::new().with(LABELS, labels(10)), &words);
    let words = [LABELS, "29 labels for the 30 images", IMAGES];
    mnist_refused(&Mnist::new().with(LABELS, idx(0x801, &[29], &[0; 29])), &words);
    let words = ["test images are [2, 2], training images [4, 4]"];
    mnist_refused(&Mnist::new().with("t10k-images-idx3-ubyte", idx(0x803, &[30, 2, 2], &[0; 120])), &words);
}

// The user's own table.

fn table_refused(text: impl AsRef<[u8]>, set: &str, words: &[&str]) {
    let place = Place::new();
    place.write("mine.csv", text);
    let line = format!("{TINY} --set data.kind=csv --set data.path=mine.csv --set partition.clients=2 --out run {set}");
    place.refuses(&line, words);
}

#[test]
fn a_ragged_table_is_refused_with_the_line() {
    let ragged = pets(9).replacen("cat,", "cat,1,", 1);
    table_refused(ragged, "--set data.target=kind", &["mine.csv: line 2", "4 columns, expected 3"]);
    table_refused("a,b,y\n1,2,u\n3,4,v\n5,u\n", "--set data.target=y", &["mine.csv: line 4", "2 columns, expected 3"]);
}

#[test]
fn a_cell_that_is_not_a_number_is_refused_with_line_and_column() {
    for cell in ["tall", "", "nan", "inf", "1e99"] {
        let text = format!("a,b,y\n1,2,u\n3,{cell},v\n5,6,u\n");
        let what = if cell.is_empty() { "an empty cell".to_owned() } else { format!("`{cell}`") };
        table_refused(text, "--set data.target=y", &["mine.csv: line 3, column 2 (b)", &what, "number"]);
    }
    table_refused("1,2,0\n3,x,1\n", "--set data.target=-1", &["mine.csv: line 2, column 2", "`x`", "a finite number"]);
    // A target of words is not a regression.
    let words = ["mine.csv: line 2, column 2 (kind)", "`cat`", "a finite number"];
    table_refused(pets(9), "--set data.target=kind --set data.task=regression", &words);
    table_refused(
        "a,y\n1,u\n2,\n",
        "--set data.target=y",
        &["mine.csv: line 3, column 2 (y)", "an empty cell is not", "a label; data.missing"],
    );
}

#[test]
fn compressed_tables_and_a_table_in_the_place_of_a_site_say_what_to_do() {
    let place = Place::new();
    for (bytes, with) in
        [(&b"BZh91AY&SY"[..], "bunzip2"), (b"\xfd7zXZ\x00\x00\x04", "unxz"), (b"\x28\xb5\x2f\xfd\x04", "unzstd")]
    {
        place.write("mine.csv", bytes);
        for command in [
            "init mine.csv".to_owned(),
            format!("{TINY} --set data.kind=csv --set data.path=mine.csv --set data.target=y --out run"),
        ] {
            place.refuses(&command, &["mine.csv", "only gzip is read", with]);
        }
    }
    place.write("mine.csv", "a,b,y\n1,2,x\n3,4,z\n");
    place.refuses("site check mine.csv", &["mine.csv: it is a table", "`fedstein site init mine.csv`"]);
}

#[test]
fn standard_output_that_takes_nothing_is_named() {
    let Ok(full) = std::fs::OpenOptions::new().write(true).open("/dev/full") else { return };
    let place = Place::new();
    let output = place.command("data list").stdout(full).output().unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(message.contains("cannot write to standard output: "), "{message}");
}

#[test]
fn far_more_threads_than_there_are_processors_are_not_started() {
    let place = Place::new();
    let output = place.command("data list").env("RAYON_NUM_THREADS", "100000").output().unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && message.contains("note: RAYON_NUM_THREADS = 100000: "), "{message}");
}

#[test]
fn tables_in_other_encodings_are_refused_with_what_to_do() {
    let place = Place::new();
    let utf_16: Vec<u8> = "\u{feff}a,y\n1,u\n2,v\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    place.write("utf16.csv", utf_16).write("latin1.csv", b"a,y\n1,m\xfcde\n2,wach\n");
    place.write("names.csv", b"a,gr\xf6\xdfe,y\n1,2,u\n2,3,w\n");
    for (file, words) in
        [("utf16.csv", "UTF-16"), ("latin1.csv", "line 2, column 2 (y)"), ("names.csv", "line 1, column 2")]
    {
        for line in
            [format!("init {file}"), format!("{TINY} --set data.kind=csv --set data.path={file} --set data.target=y")]
        {
            place.refuses(&line, &[file, words, "save the table as UTF-8"]);
        }
    }
}

#[test]
fn a_target_that_is_not_given_or_not_there_is_refused_with_the_columns() {
    table_refused(pets(9), "", &["`data.target` is missing", "kind `csv` needs it", "a column's name"]);
    table_refused(pets(9), "--set data.target=kidn", &["mine.csv", "no column `kidn`", "`width`, `kind`, `height`"]);
    table_refused("1,2\n3,4\n", "--set data.target=5", &["mine.csv", "no column `5`", "0 to 1"]);
    Place::new().refuses(&format!("{TINY} --set data.kind=csv --set data.target=y"), &["`data.path` is missing"]);
}

#[test]
fn a_file_that_is_not_a_table_is_refused() {
    table_refused("", "--set data.target=0", &["mine.csv", "no data rows"]);
    table_refused("a,y\n", "--set data.target=y", &["mine.csv", "no data rows"]);
    table_refused("y\n1\n2\n", "--set data.target=y", &["mine.csv", "no column is left for the features"]);
    table_refused("a,y\n1,u\n2,u\n3,u\n", "--set data.target=y", &["mine.csv", "one class only, `u`"]);
    table_refused("a,y\n1,u\n", "--set data.target=y --set data.task=classification", &["mine.csv", "one class only"]);
    let mut damaged = gzip(pets(30).as_bytes());
    let checksum = damaged.len() - 6;
    damaged[checksum] ^= 0xff;
    table_refused(damaged, "--set data.target=kind", &["mine.csv", "damaged gzip"]);
    let place = Place::new();
    let csv = format!("{TINY} --set data.kind=csv --set data.target=0 --out run");
    place.refuses(&format!("{csv} --set data.path=gone.csv"), &["gone.csv", "data.path"]);
    place.refuses(&format!("{csv} --set data.path=."), &["is a directory"]);
}

#[test]
fn test_rows_of_another_table_are_refused_with_the_column() {
    let place = Place::new();
    place.write("train.csv", prices(30)).write("test.csv", "size,years,price\n1,2,110\n");
    let line = format!(
        "{TINY} --set data.kind=csv --set data.path=train.csv --set data.target=price --set data.task=regression --set partition.clients=2 --out run"
    );
    let words = ["test.csv", "it has no column `age` of the training file"];
    place.refuses(&format!("{line} --set data.test_path=test.csv"), &words);
    // A column that is too many is named before its cells are read as numbers.
    place.write("more.csv", "size,age,doctor,price\n1,2,Dr. A,110\n");
    let words =
        ["more.csv", "3 feature columns, the training file has 2", "`doctor` is not in the training file: take it out"];
    place.refuses(&format!("{line} --set data.test_path=more.csv"), &words);
    place.refuses(&format!("{line} --set data.test_path=gone.csv"), &["gone.csv", "data.test_path"]);
    let words = ["partition.clients = 25", "only 24 training rows"];
    place.refuses(&format!("{line} --set partition.clients=25"), &words);
}

#[test]
fn a_class_of_test_rows_alone_is_refused() {
    let place = Place::new();
    place.write("train.csv", "a,y\n1,u\n2,w\n3,u\n4,w\n").write("test.csv", "a,y\n1,u\n2,x\n3,x\n");
    let keys = "--set data.kind=csv --set data.path=train.csv --set data.test_path=test.csv --set data.target=y";
    let words = ["test.csv", "`x` in 2 rows", "no row of the training file has it"];
    place.refuses(&format!("{TINY} {keys} --set partition.clients=2 --out run"), &words);
}

#[test]
fn two_features_of_one_name_are_refused() {
    // Rows to predict in another order of columns could not be told apart.
    table_refused("a,b,a,y\n1,2,3,u\n4,5,6,w\n", "--set data.target=y", &["mine.csv", "two columns are named `a`"]);
}

#[test]
fn scores_on_validation_rows_need_validation_rows() {
    refused("--set evaluation.rows=validation", &["`evaluation.rows` = \"validation\"", "`partition.validation`"]);
    let none = "--set evaluation.rows=validation --set partition.validation=0.001";
    refused(none, &["evaluation.rows = \"validation\"", "raise `partition.validation`"]);
    refused("--set evaluation.rows=train", &["`evaluation.rows` cannot be \"train\"", "`validation`"]);
}

#[test]
fn a_rotation_of_what_cannot_be_rotated_is_refused() {
    let place = Place::new();
    let images = "--set model.kind=stack --set model.layers=[\"global-avg-pool\"] --set data.rotate=principal";
    place.refuses(&format!("train {images} --out run"), &["data.rotate", "convolutions", "\"none\""]);
    let toy =
        "--set data.kind=mixture-1d --set model.kind=mixture --set algorithm.kind=dsvgd --set data.rotate=principal";
    place.refuses(&format!("train {toy} --out run"), &["data.rotate", "toy density"]);
    place.refuses("train --set data.rotate=diagonal --out run", &["data.rotate", "principal"]);
}

#[test]
fn a_study_in_the_place_of_a_config_is_named_with_its_command() {
    let place = Place::new();
    place.write("s.toml", "title = \"S\"\n[vary.method.a]\nalgorithm.kind = \"fedavg\"\n");
    place.refuses("train s.toml", &["s.toml is a study; `fedstein study s.toml` runs it"]);
}
