"""A Tk form that writes its values to a JSON file."""

import json
import sys
import tkinter as tk

root = tk.Tk()
root.title("Guest book")
root.geometry("420x340+60+60")

tk.Label(root, text="Your name").pack(anchor="w", padx=10)
name = tk.Entry(root, width=40)
name.pack(padx=10)
tk.Label(root, text="Message").pack(anchor="w", padx=10)
message = tk.Text(root, width=40, height=6)
message.pack(padx=10)
coming = tk.BooleanVar()
tk.Checkbutton(root, text="I will come", variable=coming).pack(anchor="w", padx=10)
choice = tk.StringVar()
row = tk.Frame(root)
row.pack()
for number in range(3):
    tk.Button(row, text="Choose", command=lambda n=number: choice.set(str(n + 1))).pack(side="left", padx=8)


def save():
    entered = {
        "name": name.get(),
        "message": message.get("1.0", "end-1c"),
        "coming": coming.get(),
        "choice": choice.get(),
    }
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        json.dump(entered, file)


tk.Button(root, text="Sign", command=save).pack(pady=10)
root.bind("<Control-s>", lambda event: save())
name.focus_force()
root.mainloop()
