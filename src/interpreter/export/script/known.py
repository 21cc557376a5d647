"""Names of functions whose effects are known: those that only look, and those that change the world."""

from __future__ import annotations

PURE_FUNCTIONS = frozenset(
    """
    abs all any ascii bin bool bytes callable chr complex dict dir divmod enumerate filter float format frozenset
    getattr hasattr hash help hex id int isinstance issubclass len list map max min oct ord pow range repr reversed
    round set slice sorted str sum tuple type zip Counter Path
    """.split()
)
"""Called by their bare names, they only look at their arguments."""

SHOWING = frozenset({"print", "display", "pprint"})
"""They show their arguments, and do nothing else."""

PURE_METHODS = frozenset(
    """
    abs agg aggregate all any apply applymap arange argmax argmin argsort array asarray assign astype average
    bfill capitalize ceil clip columns concat concatenate copy corr count cov cummax cummin cumprod cumsum cut
    date date_range day_name decode describe diff dot drop_duplicates dropna dt dtypes duplicated encode endswith
    eq exists exp explode factorize ffill fillna filter find findall first fit_predict floor format from_dict
    from_records fullmatch ge get get_dummies getcwd getenv getsize group groupby groups gt head histogram
    hour idxmax idxmin iglob index info interp is_dir is_file isalpha isdigit isfile isdir isin isinf isna isnan
    isnull isoformat items iterdir iterrows itertuples join joinpath keys last le len linspace listdir loads log
    log10 log1p lower lstrip lt map match max mean median melt memory_usage merge merge_asof min mode
    month_name ne nlargest notna notnull now nsmallest nth nunique ones ones_like partition pct_change percentile
    pivot pivot_table power qcut quantile query rank ravel read read_bytes read_csv read_excel read_feather
    read_html read_json read_parquet read_pickle read_sql read_sql_query read_table read_text readline readlines
    rename reset_index reshape resample resolve rfind rglob rolling round rpartition rsplit rstrip scandir search
    select_dtypes set_index shift size sort_index sort_values split splitlines sqrt squeeze stack startswith stat
    std strftime strip strptime sum swapcase swaplevel tail take timestamp to_datetime to_dict to_frame
    to_list to_markdown to_numeric to_numpy to_period to_records to_string to_timedelta today tolist total_seconds
    transform translate transpose unique unstack upper value_counts values var walk where which xs zeros zeros_like
    zfill DataFrame Series Timestamp Timedelta train_test_split
    predict predict_proba score accuracy_score r2_score mean_squared_error mean_absolute_error dumps
    """.split()
)
"""Called as methods or as functions of a module, they leave their object as it is, unless told `inplace=True`."""

ARGUMENTS_KEPT = frozenset(
    """
    annotate axhline axvline bar barh barplot boxplot countplot errorbar fill_between fit fit_transform heatmap hist
    histplot imshow jointplot kdeplot legend lineplot loglog pairplot pcolormesh pie plot regplot savefig scatter
    scatterplot semilogx semilogy set set_title set_xlabel set_xlim set_xticks set_ylabel set_ylim set_yticks subplots
    suptitle text title violinplot xlabel xlim xticks ylabel ylim yticks to_csv to_excel to_json to_parquet to_pickle
    dump dumps write writerow writerows run
    """.split()
)
"""They may change the object whose methods they are, but not what they are given."""

WRITING = frozenset(
    """
    chmod commit copyfile copytree dump execute executemany executescript extractall imsave imwrite makedirs mkdir
    move post put rename rmdir rmtree run save savefig savemat savetxt savez savez_compressed send sendmail symlink
    symlink_to system to_clipboard to_csv to_excel to_feather to_file to_gbq to_hdf to_html to_json to_latex
    to_parquet to_pickle to_sql to_stata to_xml touch unlink upload urlretrieve write write_bytes write_html
    write_image write_json write_text writelines writerow writerows writestr check_call check_output Popen
    """.split()
)
"""Called in any way, they change files, databases or something outside of the program."""

FILE_MODULES = frozenset({"os", "shutil", "subprocess", "webbrowser", "smtplib", "ftplib"})
"""What is called of these changes the world, unless it is known to look only."""

OPAQUE = frozenset({"exec", "eval", "globals", "locals", "vars", "compile", "__import__", "get_ipython"})
"""Through these, code can read and change names that cannot be seen in it."""

SHELL_LOOKING = frozenset(
    """
    cat cd column cut date df diff du echo env false file find free grep head hostname id jq less ls lscpu man
    nproc ps printenv printf pwd sort stat tail test tr tree true type uname uniq uptime wc which whereis whoami
    """.split()
)
"""Shell commands that only look, as long as nothing is redirected to a file."""
