"""A Qt dialog that writes its values to a JSON file and closes."""

import json
import sys

from PyQt5 import QtWidgets

application = QtWidgets.QApplication(sys.argv)
dialog = QtWidgets.QDialog()
dialog.setWindowTitle("Order")
form = QtWidgets.QFormLayout(dialog)
name, notes = QtWidgets.QLineEdit(), QtWidgets.QPlainTextEdit()
size = QtWidgets.QComboBox()
size.addItems(["Small", "Medium", "Large"])
gift = QtWidgets.QCheckBox("Wrap it as a gift")
form.addRow("Customer", name)
form.addRow("Notes", notes)
form.addRow("Size", size)
form.addRow("", gift)
buttons = QtWidgets.QDialogButtonBox()
buttons.addButton("Save order", QtWidgets.QDialogButtonBox.AcceptRole)
buttons.addButton("Forget it", QtWidgets.QDialogButtonBox.RejectRole)
buttons.accepted.connect(dialog.accept)
buttons.rejected.connect(dialog.reject)
form.addRow(buttons)
dialog.resize(420, 320)
name.setFocus()
if dialog.exec_():
    entered = {
        "name": name.text(),
        "notes": notes.toPlainText(),
        "size": size.currentText(),
        "gift": gift.isChecked(),
    }
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        json.dump(entered, file)
