"""What Python calls do, by their whole names and by the names of methods."""

from __future__ import annotations

import sys
from functools import cache
from typing import NamedTuple


class Does(NamedTuple):
    """One effect of a call, and the argument that says on what."""

    kind: str
    """read, write, delete, tree (a whole folder), get, send, kill, database, unknown, run (a command), shell, code."""
    at: int = -1
    """The position of the argument; -1: there is none."""
    name: str = ""
    """The same argument's keyword."""


# name: effects, each `kind [position[:keyword]]`; what has several effects lists them with commas.
_CALLS = """
os.remove: delete 0:path
os.unlink: delete 0:path
os.rmdir: delete 0:path
os.removedirs: delete 0:name
os.rename: delete 0:src, write 1:dst
os.renames: delete 0:old, write 1:new
os.replace: delete 0:src, write 1:dst
os.mkdir os.makedirs: write 0:path
os.chmod os.chown os.lchown os.utime os.truncate os.mkfifo os.mknod os.setxattr os.removexattr: write 0:path
os.link os.symlink: write 1:dst
os.listdir os.scandir os.walk os.stat: read 0:path
os.putenv: unknown
os.open dbm.open: write 0
wave.open: opened 0 1:mode
operator.methodcaller operator.attrgetter: unknown
os.kill os.killpg os.abort: kill 0:pid
os.system os.popen: shell 0:command
os.startfile: program 0
os.posix_spawn os.posix_spawnp os.execv os.execve os.execvp os.execvpe: exec 0
os.spawnv os.spawnve os.spawnvp os.spawnvpe: exec 1
os.execl os.execle os.execlp os.execlpe: execall 0
os.spawnl os.spawnle os.spawnlp os.spawnlpe: execall 1
os.setuid os.setgid os.chroot os.mount: unknown
subprocess.run subprocess.call subprocess.check_call subprocess.check_output subprocess.Popen: run 0:args
subprocess.getoutput subprocess.getstatusoutput: shell 0:cmd
asyncio.create_subprocess_shell: shell 0:cmd
asyncio.create_subprocess_exec: runall
asyncio.open_connection: send 0:host
asyncio.start_server: send
pty.spawn pexpect.run pexpect.spawn: run 0
sh.Command: unknown
shutil.rmtree: tree 0:path
shutil.move: delete 0:src, write 1:dst
shutil.copy shutil.copy2 shutil.copyfile shutil.copytree shutil.copymode shutil.copystat: read 0:src, write 1:dst
shutil.make_archive: read 2:root_dir, writearchive 0:base_name
shutil.unpack_archive: read 0:filename, write 1:extract_dir
shutil.chown: write 0:path
tempfile.mkdtemp tempfile.mkstemp tempfile.NamedTemporaryFile tempfile.TemporaryDirectory: temporary
tempfile.TemporaryFile tempfile.SpooledTemporaryFile:
pathlib.Path().write_text pathlib.Path().write_bytes pathlib.Path().touch pathlib.Path().mkdir: write self
pathlib.Path().chmod pathlib.Path().symlink_to pathlib.Path().hardlink_to: write self
pathlib.Path().unlink pathlib.Path().rmdir: delete self
pathlib.Path().rename pathlib.Path().replace: delete self, write 0:target
pathlib.Path().read_text pathlib.Path().read_bytes pathlib.Path().iterdir: read self
pathlib.Path().glob pathlib.Path().rglob: read self
pathlib.Path().open: openedpath
get_ipython().system get_ipython().getoutput: shell 0
IPython.get_ipython().system IPython.get_ipython().getoutput: shell 0
xml.etree.ElementTree.ElementTree().write xml.etree.ElementTree.parse().write: write 0
glob.glob glob.iglob: read 0
urllib.request.urlopen: get 0:url
urllib.request.Request:
urllib.request.urlretrieve: get 0:url, write 1:filename
requests.get requests.head requests.options: get 0:url
requests.post requests.put requests.patch requests.delete: send 0:url
requests.request: send 1:url
requests.Session().get requests.Session().head httpx.Client().get httpx.AsyncClient().get: get 0:url
requests.Session().post requests.Session().put requests.Session().delete requests.Session().patch: send 0:url
requests.Session().request requests.Session().send: send 1:url
httpx.get httpx.head httpx.options: get 0:url
httpx.post httpx.put httpx.patch httpx.delete: send 0:url
httpx.request httpx.stream: send 1:url
httpx.Client().post httpx.Client().put httpx.Client().patch httpx.Client().delete: send 0:url
httpx.AsyncClient().post httpx.AsyncClient().put: send 0:url
aiohttp.ClientSession aiohttp.request: send
aiohttp.ClientSession().get: get 0:url
aiohttp.ClientSession().post aiohttp.ClientSession().put: send 0:url
websockets.connect websocket.create_connection: send 0
http.client.HTTPConnection http.client.HTTPSConnection: send 0:host
http.server.HTTPServer socketserver.TCPServer: send
smtplib.SMTP smtplib.SMTP_SSL imaplib.IMAP4 imaplib.IMAP4_SSL poplib.POP3 poplib.POP3_SSL: send 0:host
ftplib.FTP ftplib.FTP_TLS telnetlib.Telnet paramiko.SSHClient().connect: send 0:host
socket.create_connection: sendto 0:address
socket.socket().connect socket.socket().sendto socket.socket().bind: sendto 0
socket.getaddrinfo socket.gethostbyname: get 0
webbrowser.open webbrowser.open_new webbrowser.open_new_tab: get 0:url
boto3.client boto3.resource boto3.Session: send
google.cloud.storage.Client azure.storage.blob.BlobServiceClient: send
openai.OpenAI openai.AsyncOpenAI anthropic.Anthropic slack_sdk.WebClient twilio.rest.Client: send
stripe.Charge.create paramiko.SSHClient paramiko.Transport: send
redis.Redis redis.from_url redis.StrictRedis pymongo.MongoClient elasticsearch.Elasticsearch: server
psycopg.connect psycopg2.connect pymysql.connect MySQLdb.connect mysql.connector.connect asyncpg.connect: reach 1:host
sqlalchemy.create_engine: engine 0:url
sqlite3.connect aiosqlite.connect duckdb.connect: touch 0:database
pandas.read_sql pandas.read_sql_query pandas.read_sql_table: sql 0:sql
pandas.read_csv pandas.read_excel pandas.read_json pandas.read_parquet pandas.read_html: fetch 0
pandas.read_table pandas.read_feather pandas.read_xml pandas.read_fwf pandas.read_hdf: fetch 0
polars.read_csv polars.read_parquet polars.scan_csv polars.scan_parquet polars.read_json: fetch 0
yaml.unsafe_load: unknown
cProfile.run profile.run: code 0
pandas.read_pickle joblib.load torch.load pickle.load pickle.loads marshal.loads dill.load dill.loads: unknown
shelve.open: write 0:filename
pandas.ExcelWriter pandas.HDFStore: write 0:path
numpy.save numpy.savez numpy.savez_compressed numpy.savetxt: write 0:file
numpy.load numpy.loadtxt numpy.genfromtxt numpy.fromfile: fetch 0
numpy.memmap: write 0:filename
matplotlib.pyplot.savefig matplotlib.pyplot.imsave matplotlib.image.imsave: write 0:fname
cv2.imwrite imageio.imwrite imageio.v2.imwrite imageio.v3.imwrite imageio.mimsave: write 0
cv2.VideoWriter soundfile.write scipy.io.wavfile.write scipy.io.savemat: write 0
torch.save joblib.dump: write 1:filename
torch.hub.load torch.hub.download_url_to_file nltk.download: get
tensorflow.keras.models.save_model: write 1
zipfile.ZipFile tarfile.open: opened 0:file 1:mode
zipfile.ZipFile().extractall zipfile.ZipFile().extract tarfile.open().extractall tarfile.open().extract: extract
gzip.open bz2.open lzma.open codecs.open io.open io.FileIO tarfile.TarFile h5py.File netCDF4.Dataset: opened 0 1:mode
fitz.open PIL.Image.open: fetch 0
logging.FileHandler logging.handlers.RotatingFileHandler: write 0:filename
logging.basicConfig: write -1:filename
dotenv.load_dotenv dotenv.dotenv_values: env 0:dotenv_path
yt_dlp.YoutubeDL: send
huggingface_hub.hf_hub_download huggingface_hub.snapshot_download datasets.load_dataset: get
transformers.pipeline sentence_transformers.SentenceTransformer: get
sklearn.datasets.fetch_openml seaborn.load_dataset sklearn.datasets.fetch_california_housing: get
yfinance.download yfinance.Ticker: get
pip.main pip._internal.main: unknown
importlib.reload runpy.run_path runpy.run_module code.interact pdb.set_trace: unknown
ctypes.CDLL ctypes.cdll ctypes.WinDLL ctypes.windll ctypes.util.find_library cffi.FFI: unknown
types.FunctionType types.CodeType marshal.load: unknown
os.fork os.forkpty: fork
multiprocessing.Process().kill multiprocessing.Process().terminate:
subprocess.Popen().kill subprocess.Popen().terminate subprocess.Popen().send_signal:
psutil.Process().kill psutil.Process().terminate: kill
signal.pthread_kill signal.raise_signal: kill 0
pyautogui.click pyautogui.write pyautogui.typewrite pyautogui.press pyautogui.hotkey: unknown
computer.files.edit: write 0:path
computer.files.read: read 0:path
computer.files.search: read 1:path
computer.vision.ocr: read 1:path
computer.vision.query: read 2:path
computer.skills.save computer.skills.new_skill.from_block: code 1:code
computer.skills.run computer.skills.import_skills: unknown
eval exec compile: code 0
__import__ importlib.import_module: import 0
getattr setattr delattr: attribute
globals locals vars: namespace
input:
open: opened 0:file 1:mode
"""

# Methods of an object whose kind is not known: their names say enough to be careful.
_METHODS = """
to_csv to_excel to_parquet to_json to_html to_pickle to_feather to_hdf to_stata to_xml to_markdown to_latex: written 0
to_orc to_netcdf to_zarr to_file write_csv write_parquet write_json write_image write_html write_excel: written 0
write_ndjson write_ipc sink_csv sink_parquet savefig save save_model save_weights: written 0
save_pretrained save_to_disk tofile dump_svmlight_file write_png write_pdf output: written 0
write_text write_bytes touch mkdir symlink_to hardlink_to: write self
unlink rmdir: delete self
to_sql: table
to_gbq: send
execute executemany executescript exec_driver_sql: sql 0
commit: commit
insert_one insert_many update_one update_many replace_one delete_one delete_many drop_collection bulk_write: server
flushall flushdb drop_all create_all drop_database: server
post patch sendmail send_message sendall sendto send_email send_mail publish postMessage chat_postMessage: send
upload_file upload_fileobj put_object delete_object delete_objects upload_blob upload_from_filename: send
upload_file_obj create_bucket delete_bucket terminate_instances run_instances send_keys storbinary: send
download_file urlretrieve download_fileobj retrbinary: get
urlopen: get 0
kill terminate send_signal: kill
exec_command: send
extractall: extract
system: unknown
run_line_magic run_cell_magic run_cell getoutput: unknown
"""

# Modules whose calls are all in the table, or harmless.
_KNOWN_MODULES = frozenset(
    "numpy pandas scipy matplotlib seaborn sklearn statsmodels sympy networkx PIL plotly bokeh altair tqdm "
    "yaml toml tomli tomllib tomli_w bs4 lxml html5lib openpyxl xlsxwriter xlrd docx pptx pypdf PyPDF2 "
    "pdfplumber fitz reportlab fpdf requests httpx aiohttp urllib3 polars pyarrow duckdb sqlalchemy sqlite3 "
    "psycopg psycopg2 pymysql torch torchvision tensorflow keras jax xgboost lightgbm catboost nltk spacy "
    "gensim cv2 skimage imageio rich tabulate dateutil pytz tzdata dotenv jinja2 markdown pygments regex "
    "attr attrs pydantic IPython ipywidgets numba dask xarray geopandas shapely folium wordcloud boto3 "
    "openai anthropic redis pymongo paramiko psutil pexpect websockets websocket yfinance transformers "
    "datasets sentence_transformers huggingface_hub joblib h5py netCDF4 simplejson orjson ujson ruamel "
    "chardet charset_normalizer termcolor colorama prettytable humanize more_itertools toolz soundfile "
    "librosa pydub qrcode barcode emoji faker Faker numexpr tables pyperclip unidecode Levenshtein "
    "fuzzywuzzy rapidfuzz squarify missingno mplfinance graphviz pydot mpl_toolkits "
    "google azure slack_sdk twilio stripe selenium playwright pyautogui smtplib".split()
)
_NOT_HARMLESS = frozenset(
    {"ctypes", "cffi", "runpy", "code", "pdb", "pty", "antigravity", "idlelib", "ensurepip", "venv"}
)

ALIASES = {
    "np": "numpy", "pd": "pandas", "plt": "matplotlib.pyplot", "sns": "seaborn", "pl": "polars", "sa": "sqlalchemy",
    "tf": "tensorflow", "px": "plotly.express", "go": "plotly.graph_objects", "nx": "networkx", "mpl": "matplotlib",
    "sp": "subprocess", "Path": "pathlib.Path", "BeautifulSoup": "bs4.BeautifulSoup", "Image": "PIL.Image",
    "datetime": "datetime", "display": "IPython.display.display", "tqdm": "tqdm.tqdm", "Counter": "collections.Counter",
    "defaultdict": "collections.defaultdict", "timedelta": "datetime.timedelta", "torch": "torch",
}  # fmt: skip


@cache
def calls() -> dict[str, tuple[Does, ...]]:
    """By whole name; a call in a name is written `()`."""
    return _parsed(_CALLS)


@cache
def methods() -> dict[str, tuple[Does, ...]]:
    """By the name of the method alone."""
    return _parsed(_METHODS)


def is_known_module(name: str) -> bool:
    """Is everything that matters about this module in the table?"""
    root = name.partition(".")[0]
    standard = root in sys.stdlib_module_names and root not in _NOT_HARMLESS and not root.startswith("_")
    return standard or root in _KNOWN_MODULES or root == "__future__"


def _parsed(text: str) -> dict[str, tuple[Does, ...]]:
    rows: dict[str, tuple[Does, ...]] = {}
    for line in filter(None, text.splitlines()):
        names, _, effects = line.partition(":") if line.startswith(("input:", "open:")) else line.partition(": ")
        told = tuple(_does(each) for each in effects.split(",") if each.strip())
        rows |= dict.fromkeys(names.rstrip(":").split(), told)
    return rows


def _does(text: str) -> Does:
    kind, *places = text.split()
    if not places:
        return Does(kind)
    if places[0] == "self":
        return Does(kind, -1, "self")
    at, _, name = places[0].partition(":")
    return Does(kind, int(at), name)
