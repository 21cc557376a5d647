"""Solutions of the requests in eval/tasks/first_hour.py, and some that are almost right."""

from __future__ import annotations

_PANDAS = "import pandas as pd\nfrom matplotlib import pyplot as plt\n"
_SALES = f"{_PANDAS}s = pd.read_csv('sales.csv', parse_dates=['date'])\ns['revenue'] = s.units * s.price\n"

SOLUTIONS = {
    "first_hour/units": _SALES
    + """
print(s.groupby('region').units.sum())
""",
    "first_hour/revenue": _SALES
    + """
print(s.revenue.sum())
""",
    "first_hour/best_product": _SALES
    + """
g=s.groupby('product').revenue.sum()
print(g.idxmax(),g.max())
""",
    "first_hour/monthly": _SALES
    + """
s.groupby(s.date.dt.strftime('%Y-%m')).revenue.sum().rename_axis('month').to_csv('monthly.csv')
""",
    "first_hour/share": _SALES
    + """
print(100*s[s.region=='Coast'].units.sum()/s.units.sum())
""",
    "first_hour/growth": _SALES
    + """
g=s.groupby(s.date.dt.month).revenue.sum()
print((g[2]/g[1]-1)*100)
""",
    "first_hour/pivot": _SALES
    + """
s.pivot_table(index='region',columns='product',values='units',aggfunc='sum').to_csv('pivot.csv')
""",
    "first_hour/salaries": _PANDAS
    + """
print(pd.read_csv('people.csv').groupby('department').salary.median())
""",
    "first_hour/highest": _PANDAS
    + """
d=pd.read_csv('people.csv')
print(d.loc[d.salary.idxmax()]['name'])
""",
    "first_hour/join": _SALES
    + """
print(s.merge(pd.read_csv('suppliers.csv')).groupby('supplier').units.sum())
""",
    "first_hour/bar_chart": _SALES
    + """
s.groupby('region').units.sum().plot.bar()
plt.savefig('units.png')
""",
    "first_hour/line_chart": _SALES
    + """
s.groupby(s.date.dt.month).revenue.sum().plot()
plt.savefig('revenue.png')
""",
    "first_hour/scatter": _PANDAS
    + """
d=pd.read_csv('bodies.csv')
plt.scatter(d.height,d.weight)
plt.savefig('bodies.png')
""",
    "first_hour/pie": _SALES
    + """
s.groupby('product').units.sum().plot.pie()
plt.savefig('products.png')
""",
    "first_hour/histogram": _PANDAS
    + """
plt.hist(pd.read_csv('people.csv').salary)
plt.savefig('salaries.png')
""",
    "first_hour/box_plot": _PANDAS
    + """
pd.read_csv('people.csv').boxplot('salary',by='department')
plt.savefig('departments.png')
""",
    "first_hour/temperature": _PANDAS
    + """
d=pd.read_csv('weather.csv')
plt.plot(d.temperature)
plt.plot(d.temperature.rolling(7).mean())
plt.savefig('weather.png')
""",
    "first_hour/excel_sum": _PANDAS
    + """
print(sum(d.units.sum() for d in pd.read_excel('quarter.xlsx',sheet_name=None).values()))
""",
    "first_hour/excel_out": _SALES
    + """
s.groupby('region').units.sum().reset_index().to_excel('regions.xlsx',index=False)
""",
    "first_hour/excel_sheets": _SALES
    + """
w=pd.ExcelWriter('by_region.xlsx')
for r,g in s.groupby('region'): g.to_excel(w,sheet_name=r,index=False)
w.close()
""",
    "first_hour/excel_to_csv": _PANDAS
    + """
for n,d in pd.read_excel('quarter.xlsx',sheet_name=None).items(): d.to_csv(n+'.csv',index=False)
""",
    "first_hour/log_levels": """
import collections
print(collections.Counter(l.split()[2] for l in open('service.log')))
""",
    "first_hour/log_address": """
import collections
print(collections.Counter(l.split()[0] for l in open('access.log')).most_common(1))
""",
    "first_hour/log_status": """
import collections
print(collections.Counter(l.split()[-2] for l in open('access.log')))
""",
    "first_hour/log_hour": """
import collections
print(collections.Counter(l.split(':')[1] for l in open('access.log')).most_common(1))
""",
    "first_hour/json_total": """
import json
print(sum(i['qty']*i['price'] for o in json.load(open('orders.json')) for i in o['items']))
""",
    "first_hour/json_paid": """
import json
p=[o for o in json.load(open('orders.json')) if o['status']=='paid']
print(len(p),sum(i['qty']*i['price'] for o in p for i in o['items']))
""",
    "first_hour/json_to_csv": _PANDAS
    + """
import json
pd.DataFrame([dict(id=o['id'],**o['customer'],status=o['status']) for o in json.load(open('orders.json'))]).to_csv('orders.csv',index=False)
""",
    "first_hour/overdue": _PANDAS
    + """
d = pd.read_csv('invoices.csv', sep=';', decimal=',')
due = pd.to_datetime(d.due, format='%d.%m.%Y')
print(d[(d.paid == 'no') & (due < '2024-04-01')].amount.sum())
""",
    "first_hour/longest": _PANDAS
    + """
d=pd.read_csv('people.csv')
print(d.loc[pd.to_datetime(d.joined,dayfirst=True).idxmin()]['name'])
""",
    "first_hour/days": """
import datetime as d
print(d.date(2025,11,3)-d.date(2024,2,14))
""",
    "first_hour/iso_dates": _PANDAS
    + """
d=pd.read_csv('people.csv')
d.joined=pd.to_datetime(d.joined,dayfirst=True)
d.to_csv('people_iso.csv',index=False)
""",
    "first_hour/duplicates": _PANDAS
    + """
pd.read_csv('staff.csv').drop_duplicates().to_csv('clean.csv',index=False)
""",
    "first_hour/gaps": _PANDAS
    + """
d=pd.read_csv('staff.csv')
d.salary=d.salary.fillna(d.salary.median())
d.to_csv('filled.csv',index=False)
""",
    "first_hour/phones": _PANDAS
    + """
d=pd.read_csv('contacts.csv')
d.phone=d.phone.str.replace(r'\\D','',regex=True)
d.to_csv('phones.csv',index=False)
""",
    "first_hour/cities": _PANDAS
    + """
print(pd.read_csv('visits.csv').city.str.strip().str.title().value_counts())
""",
    "first_hour/regression": """
import statistics,csv
r=list(csv.DictReader(open('bodies.csv')))
print(statistics.linear_regression([float(x['height']) for x in r],[float(x['weight']) for x in r]))
""",
    "first_hour/moving_average": _PANDAS
    + """
d=pd.read_csv('weather.csv')
d['average']=d.temperature.rolling(7).mean()
d[['day','average']].to_csv('weather_7.csv',index=False)
""",
    "first_hour/pdf": """
import pypdf
print([p.extract_text() for p in pypdf.PdfReader('delivery.pdf').pages])
""",
    "first_hour/todo": """
import glob
open('todo.txt','w').writelines(l.rstrip()+'\\n' for f in sorted(glob.glob('notes/*')) for l in open(f) if 'TODO' in l)
""",
}

# Almost correct solutions.
NEAR_MISSES = {
    "first_hour/units": _SALES + "print(s)",
    "first_hour/revenue": _SALES + "print(s.units.sum() * s.price.mean())",
    "first_hour/best_product": _SALES + "print(s.groupby('product').revenue.sum())",
    "first_hour/monthly": _SALES + "s[['date', 'revenue']].to_csv('monthly.csv')",
    "first_hour/pivot": _SALES + "s.pivot_table(index='region', columns='product', values='units').to_csv('pivot.csv')",
    "first_hour/salaries": _PANDAS + "print(pd.read_csv('people.csv').groupby('department').salary.mean())",
    "first_hour/bar_chart": "from matplotlib import pyplot; pyplot.axes(); pyplot.savefig('units.png')",
    "first_hour/excel_sum": _PANDAS + "print(pd.read_excel('quarter.xlsx').units.sum())",
    "first_hour/excel_out": _SALES + "s.groupby('region').units.sum().to_csv('regions.xlsx')",
    "first_hour/excel_sheets": _SALES + "s.to_excel('by_region.xlsx', index=False)",
    "first_hour/log_levels": "print(open('service.log').read())",
    "first_hour/json_total": "print(7 * 2.5)",
    "first_hour/overdue": "print(sum(range(80, 500, 37)))",
    "first_hour/iso_dates": _PANDAS + "pd.read_csv('people.csv').to_csv('people_iso.csv', index=False)",
    "first_hour/duplicates": _PANDAS + "pd.read_csv('staff.csv').to_csv('clean.csv', index=False)",
    "first_hour/gaps": _PANDAS + "pd.read_csv('staff.csv').fillna(0).to_csv('filled.csv', index=False)",
    "first_hour/phones": _PANDAS + "pd.read_csv('contacts.csv').to_csv('phones.csv', index=False)",
    "first_hour/cities": _PANDAS + "print(pd.read_csv('visits.csv').city.value_counts())",
    "first_hour/todo": "open('todo.txt', 'w').write('TODO: order seeds')",
}
