"""Two calibration reports and a comparison.

First a scikit-learn model, of which only the probabilities are needed. Then a federation of five hospitals that train a
Bayesian network together, once with DSVGD's Newton factors and once with federated averaging.

    pip install ./python scikit-learn pandas     # in a checkout of the repository
    python python/examples/calibrate_and_train.py
"""

# %% A model of scikit-learn and its report
import fedstein
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.3, random_state=0)
forest = RandomForestClassifier(random_state=0).fit(X_train, y_train)

report = fedstein.report(forest.predict_proba(X_test), y_test, classes=[0, 1], title="random forest")
print(report)
print(report.verdict)
report.save("forest-report")  # forest-report/report.html

# %% A federation: the rows of five hospitals, which stay where they are
hospital = X_train.index.to_numpy() % 5
hospital_test = X_test.index.to_numpy() % 5
data = fedstein.Data(X_train, y_train, clients=hospital, test=(X_test, y_test, hospital_test))
print(data)
# Many of the 30 features move together, which a warning would say: they are put into their principal axes.
axes = {"data.rotate": "principal"}
newton = fedstein.train(axes, data=data, name="newton", rounds=10, model={"hidden": [10]}, progress=False)
print(newton.report())

# %% New rows: probabilities, and how much of the uncertainty is the particles' disagreement
probabilities = newton.predict(X_test[:3])
uncertainty = newton.predict_uncertainty(X_test[:3])
for p, total, epistemic in zip(probabilities, uncertainty["total"], uncertainty["epistemic"]):
    print(f"p(benign) = {p[1]:.3f}, entropy {total:.3f} nats, of which {epistemic:.3f} disagreement")

# %% Another method on the same clients, and both in one report
averaging = fedstein.train(
    data=data,
    name="averaging",
    rounds=10,
    model={"hidden": [10]},
    algorithm={"kind": "fedavg"},
    schedule={"clients": 5},
    progress=False,
)
for name, numbers in fedstein.compare([newton, averaging], out="both").compared.items():
    print(f"{name:12} accuracy {numbers['accuracy']:.3f}  NLL {numbers['nll']:.3f}  ECE {numbers['ece']:.3f}")
