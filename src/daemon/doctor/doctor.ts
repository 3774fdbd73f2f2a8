import {
  bubblewrap,
  cgroups,
  launcher,
  namespaces,
  nodeVersion,
  openFiles,
  sharedLimits,
  trialSandbox,
  uidRange,
} from './machine-checks.ts';
import { daemonHealth, firstKey, ports } from './daemon-checks.ts';
import { clock, dataFolder, diskSpace, keyFiles, store } from './data-checks.ts';
import { brokenPools, keyEnds } from './service-checks.ts';
import { type Check, type Finding, type Patient, problem } from './finding.ts';

const CHECKS: readonly (readonly [name: string, check: Check])[] = [
  ['node', nodeVersion],
  ['launcher', launcher],
  ['bubblewrap', bubblewrap],
  ['namespaces', namespaces],
  ['sandboxes', trialSandbox],
  ['cgroups', cgroups],
  ['uid range', uidRange],
  ['shared limits', sharedLimits],
  ['open files', openFiles],
  ['clock', clock],
  ['data folder', dataFolder],
  ['disk', diskSpace],
  ['keys', keyFiles],
  ['store', store],
  ['port', ports],
  ['daemon', daemonHealth],
  ['tenant key', firstKey],
  ['pools', brokenPools],
  ['key ends', keyEnds],
];
const CHECK_MS = 30_000;

/** Changes nothing. A check that fails counts as a problem. */
export const examine = async (patient: Patient): Promise<readonly Finding[]> => {
  const findings: Finding[] = [];
  for (const [name, check] of CHECKS) {
    try {
      findings.push(...(await withinTime(Promise.resolve(check(patient)))));
    } catch (error) {
      findings.push(
        ...problem(
          name,
          error instanceof Error ? error.message : String(error),
          'this could not be checked; run it as the daemon’s user',
        ),
      );
    }
  }
  return findings;
};

const withinTime = async <T>(work: Promise<T>): Promise<T> => {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no result in ${CHECK_MS / 1_000} s`)), CHECK_MS);
  });
  return await Promise.race([work, late]).finally(() => clearTimeout(timer));
};
