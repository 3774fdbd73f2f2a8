/** Tells what a request comes to, as far as its method and path tell. */
export interface ExplainedRoute {
  readonly operation: string;
  readonly method: string;
  /** In the form that rules look at. */
  readonly path: string;
  readonly namespace?: string;
}

/** Rows that are another one with the name spelled in two segments. */
const SPELLED: Readonly<Record<string, readonly [operation: string, path: string]>> = {
  deleteApiKeyByFullName: ['deleteApiKeyByName', '/admin/api-keys/{name}'],
  promoteApiKeyByFullName: ['promoteApiKey', '/admin/api-keys/{name}/promote'],
};

/** Whether keys of admins alone may ask for the path, whatever rules say. */
export const isForAdmins = (path: string): boolean => /^\/(?:admin|debug)\//.test(path);

/** Holds what POST /api-keys comes to where its body names somebody else. */
export const KEY_FOR_OTHERS: ExplainedRoute = {
  operation: 'createApiKeyForTenant',
  method: 'POST',
  path: '/admin/api-keys',
};

const ENDPOINT = /^\/sandboxes\/([^/]+)\/endpoints\/([^/]+)(?:\/|$)/;

/** Finds the operation of a request; undefined where there is none. */
export const routeOf = (
  operations: Readonly<Record<string, { readonly method: string; readonly path: string }>>,
  method: string,
  given: string,
): ExplainedRoute | undefined => {
  const [whole = '', query = ''] = given.split('?');
  const path = whole.replace(/^\/v1(?=\/)/, '');
  // any method of any path below an endpoint opens it
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
    if (!params) continue;
    const [own = operation, template = row.path] = SPELLED[operation] ?? [];
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
  }
  return undefined;
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
