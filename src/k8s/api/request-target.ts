export type Query = Readonly<Record<string, string | number | boolean | undefined>>;

/** Such as `pods` in `/api/v1/namespaces/a/pods/b?…`. */
export const kindIn = (path: string): string => {
  const [, api, , ...rest] = path.split('?', 1)[0]?.split('/') ?? [];
  const inGroup = api === 'apis' ? rest.slice(1) : rest;
  return (inGroup[0] === 'namespaces' && inGroup.length > 2 ? inGroup[2] : inGroup[0]) ?? 'server';
};

const NAMESPACE_IN_PATH = /\/namespaces\/([^/?]+)/;

export const namespaceIn = (path: string): string => NAMESPACE_IN_PATH.exec(path)?.[1] ?? '';

export const queryText = (query: Query | undefined): string => {
  if (!query) return '';
  const given = Object.entries(query).flatMap(([name, value]) =>
    value === undefined ? [] : [`${name}=${encodeURIComponent(value)}`],
  );
  return given.length === 0 ? '' : `?${given.join('&')}`;
};
