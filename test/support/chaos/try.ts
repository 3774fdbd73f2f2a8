console.log('begin', new Date().toISOString());
import { writeFileSync, mkdirSync } from 'node:fs';
import { chaosRun } from './chaos-run.ts';
const [claims='50', faults='0', atMost='60000', seed='1', kinds=''] = process.argv.slice(2);
const r = await chaosRun({ seed: Number(seed), claims: Number(claims), faults: Number(faults), atMostMs: Number(atMost), ...(kinds ? {kinds: kinds.split(',')} : {}), onFault: (l) => console.log(l) });
const dir = '/tmp/chaos-out/' + process.pid; mkdirSync(dir, { recursive: true });
writeFileSync(dir + '/evidence.json', JSON.stringify(r.evidence)); r.logs.forEach((l, n) => writeFileSync(`${dir}/replica-${n}.log`, l));
const by: Record<string, number> = {}; for (const c of r.evidence.calls) { const k = `${c.asked.what} ${c.answer ? c.answer.status + ' ' + (c.answer.errorCode ?? c.answer.shows ?? '') : 'unknown'}`; by[k] = (by[k] ?? 0) + 1; }
console.log(r.claims, 'claims', r.calls, 'calls', r.evidence.changes.length, 'changes', r.evidence.sightings.length, 'sightings', dir); console.table(by);
for (const v of r.violations.slice(0, 40)) console.log(v.promise + ': ' + v.what.slice(0, 900));
console.log(r.violations.length, 'violations');
