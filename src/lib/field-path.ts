/** `spec.containers[0].name`; empty for the whole. */
export const fieldPath = (path: readonly PropertyKey[]): string =>
  path.reduce<string>(
    (above, part) =>
      typeof part === 'number'
        ? `${above}[${part}]`
        : above === ''
          ? String(part)
          : `${above}.${String(part)}`,
    '',
  );
