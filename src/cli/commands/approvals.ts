import { type Command, Option } from 'commander';
import { OPERATIONS } from '../client/generated/api.ts';
import type { SandpoolClient } from '../client/sandpool-client.ts';
import type { ApiKey } from '../client/wire.ts';
import { configFlags, loadConfig } from '../../daemon/config/config.ts';
import type { NamedTexts } from '../../daemon/config/environment.ts';
import { HELD_OPERATIONS } from '../../model/approvals/held-operations.ts';
import { ruleFor, type PolicyRule, type PolicySubject } from '../../model/approvals/policy.ts';
import { APPROVAL_STATUSES } from '../../model/approvals/approval.ts';
import type { Actions } from '../common/action.ts';
import { addConnectionOptions, connect, type ConnectionOptions } from '../common/connection.ts';
import { print } from '../common/context.ts';
import { CliFailure } from '../common/failure.ts';
import { group, leaf } from '../common/leaf.ts';
import { addPageOptions, type PageOptions } from '../common/paging.ts';
import { approvalFields, approvalTable } from '../show/approval-rows.ts';
import { addOutputOption, type OutputOptions, show } from '../common/output.ts';

/** Decisions are made only in the console. */
export const approvalsGroup = ({ action, serviceAction }: Actions): Command =>
  group('approvals', 'Shows requests that wait for approval, and explains the policy', [
    listLeaf(serviceAction),
    getLeaf(serviceAction),
    explainLeaf(action),
  ]);

interface ListOptions extends OutputOptions, PageOptions {
  readonly status?: (typeof APPROVAL_STATUSES)[number];
}

const listLeaf = (action: Actions['serviceAction']): Command =>
  addPageOptions(
    addOutputOption(
      addConnectionOptions(
        leaf({
          usage: 'list',
          summary:
            'Lists your requests that wait or waited for approval, newest first; for an admin, ' +
            'everybody’s.',
          examples: [
            'sandpool approvals list',
            'sandpool approvals list --status pending --admin -o wide',
          ],
        }),
      ),
    ).addOption(
      new Option('--status <status>', 'only with this status').choices(APPROVAL_STATUSES),
    ),
  ).action(
    action(async ({ api, context }, _operands, options: ListOptions) => {
      const { status, limit, offset } = options;
      const page = await api.call('listApprovals', {
        query: { status, limit, offset },
      });
      await show(context, options, {
        value: page,
        text: (wide) => approvalTable(page.items, wide),
      });
    }),
  );

const getLeaf = (action: Actions['serviceAction']): Command =>
  addOutputOption(
    addConnectionOptions(
      leaf({
        usage: 'get <approval>',
        summary: 'Shows a request that waits or waited for approval.',
        examples: ['sandpool approvals get 01a21a8e-a887-7738-8b09-9f212a599a4d'],
      }),
    ),
  ).action(
    action(async ({ api, context }, [id], options: OutputOptions) => {
      const approval = await api.call('getApproval', { params: { approvalId: String(id) } });
      await show(context, options, { value: approval, text: () => approvalFields(approval) });
    }),
  );

interface ExplainOptions extends ConnectionOptions {
  readonly key?: string;
  readonly role?: 'user' | 'admin';
  readonly team?: string;
  readonly gated?: boolean;
  readonly body?: string;
}

const explainLeaf = (action: Actions['action']): Command => {
  const command = leaf({
    usage: 'explain <method> <path>',
    summary:
      'Explains which rule of the settings matches a request, and what happens to the ' +
      'request. It sends nothing except a lookup of the key. It takes the flags of serve.',
    examples: [
      'sandpool approvals explain DELETE /sandboxpools/web --config sandpool.yaml --gated',
      'sandpool approvals explain POST /api-keys --role admin --config sandpool.yaml',
      `sandpool approvals explain POST /sandboxpools --body '{"replicas":20}' --config my.yaml`,
    ],
  })
    .option(
      '--key <keyId>',
      'as a request by this key; otherwise --role, --team and --gated describe the key',
    )
    .addOption(new Option('--role <role>', 'role of the key').choices(['user', 'admin']))
    .option('--team <team>', 'team of the key')
    .option('--gated', 'as if the key were gated')
    .option('--body <json>', 'body of the request; none by default')
    .option('--server <url>', 'the daemon that knows the key [SANDPOOL_SERVER]')
    .option('--key-file <file>', 'file with the API key for the lookup')
    .option('--admin', 'use the admin key of the local daemon');
  for (const { flags, description } of configFlags())
    if (!command.options.some(({ long }) => long === flags.split(' ')[0]))
      command.option(flags, description);
  return command.action(
    action(1, async (context, [method, path], options: NamedTexts & ExplainOptions) => {
      const { config } = loadConfig({ env: context.env, argvOptions: textsOf(options) });
      const asked = routeOf(OPERATIONS, String(method).toUpperCase(), String(path));
      if (!asked)
        throw new CliFailure(`there is no operation ${String(method)} ${String(path)}`, [
          'GET /openapi.json lists them; the path begins with /',
        ]);
      const key =
        options.key === undefined ? undefined : await lookUp(options, options.key, context);
      const team = key?.team ?? options.team ?? 'default';
      const asker: Asker = {
        namespace: config.namespacePattern.replaceAll('{team}', team),
        role: key?.role ?? options.role ?? 'user',
        team,
        gated: key?.gated ?? options.gated === true,
        body: { value: options.body === undefined ? undefined : jsonOf(options.body) },
      };
      const { rules } = config.approvals;
      const lines = [
        `${asked.operation} by a key of role ${asker.role}: ${outcomeOf(asked, asker, rules)}`,
        ...(asked.operation === 'createApiKey'
          ? [
              `${KEY_FOR_OTHERS.operation}, which it is with team, user or role in its body: ` +
                outcomeOf(KEY_FOR_OTHERS, asker, rules),
            ]
          : []),
      ];
      await print(context.stdout, lines.map((line) => `${line}\n`).join(''));
      return 0;
    }),
  );
};

const OUTCOME = { allow: 'passes', require: 'waits for approval', deny: 'is denied' } as const;

type Asker = Pick<PolicySubject, 'namespace' | 'role' | 'team' | 'gated' | 'body'>;

const jsonOf = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    throw new CliFailure('--body is not valid JSON', ['such as --body \'{"replicas":20}\'']);
  }
};

const outcomeOf = (asked: ExplainedRoute, asker: Asker, rules: readonly PolicyRule[]): string => {
  const { operation, path, namespace = asker.namespace } = asked;
  if (!Object.hasOwn(HELD_OPERATIONS, operation)) return 'rules do not apply to it';
  if (asker.role !== 'admin' && (isForAdmins(path) || namespace !== asker.namespace))
    return 'is refused regardless of the rules: only admins may do it (ADMIN_REQUIRED)';
  const rule = ruleFor(rules, { ...asker, ...asked, namespace });
  return rule ? `${OUTCOME[rule.verdict]}, by the rule "${rule.text}"` : 'passes; no rule matches';
};

/** In the settings' own words, except for the role, which is the key's. */
const textsOf = ({
  role: _ofTheKey,
  body: _ofTheRequest,
  ...options
}: NamedTexts & ExplainOptions): NamedTexts =>
  Object.fromEntries(
    Object.entries(options as Readonly<Record<string, unknown>>).filter(
      (entry): entry is [string, string] => typeof entry[1] === 'string',
    ),
  );

const lookUp = async (
  options: ConnectionOptions,
  keyId: string,
  context: Parameters<typeof connect>[1],
): Promise<ApiKey> => {
  const api = await connect(options, context);
  try {
    const key = await findKey(api, keyId, options.admin === true);
    if (key) return key;
    throw new CliFailure(`there is no key ${keyId}`, ['list your keys: sandpool keys list']);
  } finally {
    api.close();
  }
};

const PAGE = 1_000;

const findKey = async (
  api: SandpoolClient,
  keyId: string,
  all: boolean,
): Promise<ApiKey | undefined> => {
  for (let offset = 0; ; offset += PAGE) {
    const asked = { limit: PAGE, offset };
    const page = all
      ? await api.call('listAllApiKeys', { query: asked })
      : await api.call('listApiKeys', { query: asked });
    const found = page.items.find((key) => key.keyId === keyId);
    if (found || page.items.length < PAGE) return found;
  }
};

interface ExplainedRoute {
  readonly operation: string;
  readonly method: string;
  /** In the form that rules match. */
  readonly path: string;
  readonly namespace?: string;
}

/** They only spell another row's name in two segments. */
const SPELLED: Readonly<Record<string, readonly [operation: string, path: string]>> = {
  deleteApiKeyByFullName: ['deleteApiKeyByName', '/admin/api-keys/{name}'],
  promoteApiKeyByFullName: ['promoteApiKey', '/admin/api-keys/{name}/promote'],
};

/** Independent of the rules. */
export const isForAdmins = (path: string): boolean => /^\/(?:admin|debug)\//.test(path);

/** POST /api-keys whose body names another user. */
const KEY_FOR_OTHERS: ExplainedRoute = {
  operation: 'createApiKeyForTenant',
  method: 'POST',
  path: '/admin/api-keys',
};

const ENDPOINT = /^\/sandboxes\/([^/]+)\/endpoints\/([^/]+)(?:\/|$)/;

/** Undefined if no row matches. */
const routeOf = (
  operations: Readonly<Record<string, { readonly method: string; readonly path: string }>>,
  method: string,
  given: string,
): ExplainedRoute | undefined => {
  const [whole = '', query = ''] = given.split('?');
  const path = whole.replace(/^\/v1(?=\/)/, '');
  // any method and path below an endpoint opens that endpoint
  const [, sandbox, endpoint = ''] = ENDPOINT.exec(path) ?? [];
  if (sandbox !== undefined) {
    const id = withoutCluster('sandboxId', sandbox);
    return {
      ...{ operation: 'openEndpoint', method: 'GET' },
      path: `/sandboxes/${id}/endpoints/${endpoint}`,
    };
  }
  for (const [operation, row] of Object.entries(operations)) {
    const params = row.method === method ? paramsIn(row.path, path) : undefined;
    if (params) return explained({ operation, ...row }, params, query);
  }
  return undefined;
};

const explained = (
  { operation, method, path }: ExplainedRoute,
  params: Readonly<Record<string, string>>,
  query: string,
): ExplainedRoute => {
  const [own = operation, template = path] = SPELLED[operation] ?? [];
  const [name, named] = (params['shortName'] ?? params['name'] ?? '').split('/').toReversed();
  const namespace = new URLSearchParams(query).get('namespace') ?? params['namespace'] ?? named;
  return {
    operation: own,
    method,
    path: template.replaceAll(/\{(\w+)\}/g, (_, parameter: string) =>
      encodeURIComponent(
        withoutCluster(parameter, (parameter === 'name' ? name : params[parameter]) ?? ''),
      ),
    ),
    ...(namespace === undefined ? {} : { namespace }),
  };
};

const withoutCluster = (parameter: string, name: string): string =>
  name.split(parameter === 'sandboxId' ? '.' : '::').at(-1) ?? '';

const paramsIn = (template: string, path: string): Readonly<Record<string, string>> | undefined => {
  const names: string[] = [];
  const pattern = template.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    names.push(name);
    return '([^/]+)';
  });
  const match = new RegExp(`^${pattern}$`).exec(path);
  if (!match) return undefined;
  try {
    return Object.fromEntries(
      names.map((name, at) => [name, decodeURIComponent(match[at + 1] ?? '')]),
    );
  } catch {
    return undefined;
  }
};
