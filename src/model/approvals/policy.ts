import type { Caller, Role } from '../tenant.ts';
import {
  bodyHolds,
  parseBodyCondition,
  type BodyCondition,
  type ReadBody,
} from './body-condition.ts';
import { HELD_OPERATIONS } from './held-operations.ts';

const VERDICTS = ['allow', 'require', 'deny'] as const;
export type Verdict = (typeof VERDICTS)[number];

const RULE_METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;

/** An absent condition holds for every request. */
export interface PolicyRule {
  readonly text: string;
  readonly verdict: Verdict;
  readonly operations?: readonly string[];
  readonly methods?: readonly string[];
  /** Normal form: `*` is one segment, a final `**` any number. */
  readonly paths?: readonly string[];
  readonly roles?: readonly Role[];
  readonly teams?: readonly string[];
  readonly namespaces?: readonly string[];
  readonly gated?: boolean;
  /** All must hold. */
  readonly body?: readonly BodyCondition[];
  /** Grants only one effect at a time. */
  readonly onceOnly: boolean;
}

export interface PolicySubject {
  readonly operation: string;
  readonly method: string;
  readonly path: string;
  readonly namespace: string;
  readonly role: Role;
  readonly team: string;
  readonly gated: boolean;
  /** Undefined if the body can't be parsed as that operation's request. */
  readonly body?: ReadBody;
}

/** An absent parameter remains `{name}`, which `*` matches. */
export const subjectOf = (
  operation: string,
  params: Readonly<Record<string, string>>,
  { namespace, role, team, gated }: Caller,
): PolicySubject => {
  const [method = '', path = ''] = (HELD_OPERATIONS[operation] ?? '').split(' ');
  return {
    operation,
    method,
    path: path.replaceAll(/\{(\w+)\}/g, (open, name: string) =>
      params[name] === undefined ? open : encodeURIComponent(params[name]),
    ),
    namespace,
    role,
    team,
    gated: gated === true,
  };
};

const CONDITIONS = ['operation', 'method', 'path', 'role', 'team', 'namespace', 'key'] as const;
const LONGEST_RULE = 1_024;

/**
 * Parses a rule such as `require method=POST|DELETE role=admin once`. Returns it, or a description
 * of its fault for people.
 */
export const parseRule = (text: string): PolicyRule | string => {
  const [verdict = '', ...parts] = text.trim().split(/\s+/);
  if (text.length > LONGEST_RULE) return `a rule has at most ${LONGEST_RULE} characters`;
  if (!isOneOf(VERDICTS, verdict)) return `"${text}" must begin with one of ${VERDICTS.join(', ')}`;
  const found = conditionsIn(text, parts);
  if (typeof found === 'string') return found;
  const { given, body, onceOnly } = found;
  if (onceOnly && verdict !== 'require') return `"${text}": once can only be used with require`;
  const [key] = given.get('key') ?? [];
  const rule: PolicyRule = {
    text: [verdict, ...parts].join(' '),
    verdict,
    ...listed('operations', given.get('operation')),
    ...listed('methods', given.get('method')),
    ...listed('paths', given.get('path')?.map(normalPath)),
    ...listed('roles', given.get('role') as readonly Role[] | undefined),
    ...listed('teams', given.get('team')),
    ...listed('namespaces', given.get('namespace')),
    gated: key === undefined ? undefined : key === 'gated',
    ...listed('body', body.length > 0 ? body : undefined),
    onceOnly,
  };
  return faultAmong(rule) ?? rule;
};

interface Conditions {
  readonly given: ReadonlyMap<string, readonly string[]>;
  readonly body: readonly BodyCondition[];
  readonly onceOnly: boolean;
}

const conditionsIn = (text: string, parts: readonly string[]): Conditions | string => {
  const given = new Map<string, readonly string[]>();
  const body: BodyCondition[] = [];
  for (const part of parts) {
    if (part === 'once') continue;
    if (part.startsWith('body.')) {
      const condition = parseBodyCondition(part);
      if (typeof condition === 'string') return `"${part}" in "${text}" ${condition}`;
      body.push(condition);
      continue;
    }
    const [name = '', ...rest] = part.split('=');
    const values = rest.join('=').split('|');
    if (!isOneOf(CONDITIONS, name) || rest.length === 0)
      return (
        `"${part}" in "${text}" must be once, body.FIELD=VALUE, ` +
        `or NAME=VALUE with ${CONDITIONS.join(', ')}`
      );
    if (given.has(name)) return `"${text}" has ${name} twice`;
    const wrong = values.map((value) => faultOf(name, value)).find((fault) => fault !== undefined);
    if (wrong !== undefined) return `${name} in "${text}" ${wrong}`;
    given.set(name, values);
  }
  return { given, body, onceOnly: parts.includes('once') };
};

const WITH_BODY: ReadonlySet<string> = new Set(['POST', 'PUT', 'PATCH']);

/** A condition that never holds is a fault: its author believes that it does. */
const faultAmong = (rule: PolicyRule): string | undefined => {
  const all = Object.entries(HELD_OPERATIONS).map(([operation, asked]) => {
    const [method = '', path = ''] = asked.split(' ');
    return { operation, method, path };
  });
  const reaches = (pattern: string, path: string): boolean => pathMatches(pattern, path, isOpen);
  const unknown = [
    ...(rule.operations?.filter((name) => !Object.hasOwn(HELD_OPERATIONS, name)) ?? []),
    ...(rule.paths?.filter((pattern) => !all.some(({ path }) => reaches(pattern, path))) ?? []),
  ];
  if (unknown.length > 0) return `"${rule.text}" matches no request with ${unknown.join(', ')}`;
  const holdsForAny = all.some(
    (each) =>
      mayConcern(rule, each) &&
      (!rule.body || WITH_BODY.has(each.method)) &&
      (rule.paths?.some((path) => reaches(path, each.path)) ?? true),
  );
  return holdsForAny ? undefined : `"${rule.text}" matches no operation`;
};

export const mayConcern = (
  rule: PolicyRule,
  { operation, method }: Pick<PolicySubject, 'operation' | 'method'>,
): boolean =>
  (rule.operations?.includes(operation) ?? true) && (rule.methods?.includes(method) ?? true);

const SEVERITY: readonly Verdict[] = ['allow', 'require', 'deny'];

/** A `require` is once-only if any of the matching rules is. */
export const strictestOf = (rules: readonly (PolicyRule | undefined)[]): PolicyRule | undefined => {
  const found = rules.flatMap((rule) => rule ?? []);
  const [strictest] = found.toSorted(
    (a, b) => SEVERITY.indexOf(b.verdict) - SEVERITY.indexOf(a.verdict),
  );
  return strictest && { ...strictest, onceOnly: found.some(({ onceOnly }) => onceOnly) };
};

export const mayPass = (rules: readonly PolicyRule[], subject: PolicySubject): boolean => {
  const first = rules.find((rule) =>
    holds(rule, subject, rule.verdict === 'allow' ? isOpen : undefined),
  );
  return first === undefined || first.verdict === 'allow';
};

export const ruleFor = (
  rules: readonly PolicyRule[],
  subject: PolicySubject,
): PolicyRule | undefined => rules.find((rule) => holds(rule, subject));

const holds = (
  rule: PolicyRule,
  subject: PolicySubject,
  isAny?: (segment: string) => boolean,
): boolean =>
  mayConcern(rule, subject) &&
  (rule.roles?.includes(subject.role) ?? true) &&
  (rule.teams?.includes(subject.team) ?? true) &&
  (rule.namespaces?.includes(subject.namespace) ?? true) &&
  (rule.gated ?? subject.gated) === subject.gated &&
  (rule.paths?.some((pattern) => pathMatches(pattern, subject.path, isAny)) ?? true) &&
  (rule.body ?? []).every((each) => bodyHolds(each, subject.body, rule.verdict === 'allow'));

/** Both must be in normal form. */
const pathMatches = (
  pattern: string,
  path: string,
  isAny: (segment: string) => boolean = () => false,
): boolean => {
  const wanted = pattern.split('/');
  const segments = path.split('/');
  const goesOn = wanted.at(-1) === '**';
  if (goesOn) wanted.pop();
  return (
    (goesOn ? segments.length >= wanted.length : segments.length === wanted.length) &&
    wanted.every((each, at) => {
      const segment = segments[at] ?? '';
      return each === '*' || each === segment || isAny(segment);
    })
  );
};

const isOpen = (segment: string): boolean => segment.startsWith('{');

const normalPath = (path: string): string =>
  path
    .split('/')
    .map((segment) =>
      segment.startsWith('*') ? segment : encodeURIComponent(decodeURIComponent(segment)),
    )
    .join('/');

const isText = (path: string): boolean => {
  try {
    return decodeURIComponent(path) !== '';
  } catch {
    return false;
  }
};

const faultOf = (name: (typeof CONDITIONS)[number], value: string): string | undefined => {
  switch (name) {
    case 'method':
      return amongst(RULE_METHODS, value);
    case 'role':
      return amongst(['user', 'admin'], value);
    case 'key':
      return amongst(['gated', 'open'], value);
    case 'path':
      return /^(?:\/(?:[^/*?#%\s]|%[0-9A-Fa-f]{2})+|\/\*{1,2})+$/.test(value) &&
        !/\*\*./.test(value) &&
        !/%2a/i.test(value) &&
        isText(value) &&
        !/^\/v1(?:\/|$)/.test(value)
        ? undefined
        : 'must be a path such as /sandboxpools/* or /admin/**, without /v1, query and host';
    default:
      return /^[A-Za-z0-9.-]{1,128}$/.test(value) ? undefined : 'must be names, separated by |';
  }
};

const amongst = (allowed: readonly string[], value: string): string | undefined =>
  allowed.includes(value) ? undefined : `must be one of ${allowed.join(', ')}`;

const isOneOf = <T extends string>(allowed: readonly T[], text: string): text is T =>
  (allowed as readonly string[]).includes(text);

const listed = <K extends string, V>(
  name: K,
  values: readonly V[] | undefined,
): Partial<Record<K, readonly V[]>> =>
  values === undefined ? {} : ({ [name]: values } as Record<K, readonly V[]>);
