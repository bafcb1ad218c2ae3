"use strict";

let doc;

/** An element with attributes and children; strings become text, so nothing is ever read as markup. */
function el(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) node.setAttribute(name, value);
  for (const child of children.flat(Infinity)) if (child != null) node.append(child);
  return node;
}

function resolve(node) {
  while (node && node.$ref) node = node.$ref.slice(2).split("/").reduce((at, part) => at[part], doc);
  return node || {};
}

/** Text with `code` and blank lines, as the descriptions have it. */
function prose(text) {
  return (text || "").split(/\n\n+/).map(part =>
    el("p", {}, part.split(/(`[^`]+`)/).map(piece =>
      piece.startsWith("`") ? el("code", {}, piece.slice(1, -1)) : piece)));
}

/** What a schema allows, in a few words. */
function kind(schema) {
  if (schema.$ref) return resolve(schema).title || schema.$ref.split("/").pop();
  const choices = schema.anyOf || schema.oneOf;
  if (choices) return choices.map(kind).join(" | ");
  if ("const" in schema) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.map(value => JSON.stringify(value)).join(" | ");
  if (schema.type === "array") return `[${kind(schema.items || {})}, …]`;
  let text = [].concat(schema.format || schema.type || "any").join(" | ");
  const bounds = [["minimum", "≥"], ["exclusiveMinimum", ">"], ["maximum", "≤"], ["exclusiveMaximum", "<"]];
  for (const [key, sign] of bounds) if (key in schema) text += ` ${sign} ${schema[key]}`;
  return text;
}

/** What a member of a body, or of an answer, is where it is left out. */
function defaultOf(schema) {
  return schema["x-default"] ?? schema.default;
}

/** An example of a schema: its own, or one put together from its members. */
function example(schema, depth = 0) {
  schema = resolve(schema);
  if (schema.examples && schema.examples.length) return schema.examples[0];
  if ("example" in schema) return schema.example;
  if (defaultOf(schema) != null) return defaultOf(schema);
  if ("const" in schema) return schema.const;
  if (schema.enum) return schema.enum[0];
  const choices = schema.anyOf || schema.oneOf;
  if (choices) return example(choices[0], depth);
  if (schema.properties && depth < 6)
    return Object.fromEntries(Object.entries(schema.properties).map(([name, member]) => [name, example(member, depth + 1)]));
  if (schema.type === "array") return depth < 6 ? [example(schema.items || {}, depth + 1)] : [];
  return { string: "…", integer: 0, number: 0, boolean: true, object: {} }[schema.type] ?? null;
}

function members(schema) {
  schema = resolve(schema);
  const required = new Set(schema.required || []);
  const rows = Object.entries(schema.properties || {}).map(([name, member]) => el("tr", {},
    el("td", {}, el("code", {}, name), required.has(name) ? " *" : ""),
    el("td", {}, el("code", {}, kind(member))),
    el("td", {}, prose(member.description || resolve(member).description),
      defaultOf(member) != null && !/default/i.test(member.description || "") ? el("span", { class: "soft" }, `Default: ${JSON.stringify(defaultOf(member))}`) : null)));
  return rows.length ? table(["Member", "Type", "Meaning"], rows) : null;
}

function table(heads, rows) {
  return el("table", {}, el("thead", {}, el("tr", {}, heads.map(head => el("th", {}, head)))), el("tbody", {}, rows));
}

function content(body) {
  return Object.entries(body.content || {}).flatMap(([media, { schema, examples, example: one }]) => {
    const shown = examples ? Object.values(examples).map(entry => entry.value) : [one ?? example(schema || {})];
    return [
      el("h3", {}, media),
      ...shown.filter(value => value != null && value !== "…").map(value =>
        el("pre", { tabindex: "0" }, typeof value === "string" ? value : JSON.stringify(value, null, 2))),
      members(schema || {}),
    ];
  });
}

function curl(method, path, operation) {
  const query = (operation.parameters || []).filter(p => p.in === "query" && p.required)
    .map(p => `${p.name}=…`).join("&");
  const lines = [`curl ${new URL(".", location).href.slice(0, -1)}${path}${query ? `?${query}` : ""}`];
  if (method !== "get" && !(method === "post" && operation.requestBody)) lines[0] += ` -X ${method.toUpperCase()}`;
  if (operation.security) lines.push('-H "Authorization: Bearer $KEY"');
  const media = Object.keys((operation.requestBody || {}).content || {});
  if (media.includes("application/json")) lines.push("--json @body.json");
  else if (media.includes("text/csv")) lines.push('-H "Content-Type: text/csv"', "--data-binary @table.csv");
  return lines.join(" \\\n  ");
}

function draw(path, method, operation) {
  const id = `${method}${path}`;
  const parameters = (operation.parameters || []).map(parameter => el("tr", {},
    el("td", {}, el("code", {}, parameter.name), parameter.required ? " *" : ""),
    el("td", {}, parameter.in), el("td", {}, el("code", {}, kind(parameter.schema || {}))),
    el("td", {}, prose(parameter.description))));
  const responses = Object.entries(operation.responses).filter(([status]) => status !== "default").map(([status, response]) =>
    el("details", { class: "more" },
      el("summary", {}, `${status} — ${resolve(response).description}`), content(resolve(response))));
  return el("details", { class: "op", id },
    el("summary", {}, el("span", { class: `method ${method}` }, method), el("code", {}, path),
      el("span", { class: "soft" }, operation.summary)),
    el("div", {}, prose(operation.description), el("pre", { tabindex: "0" }, curl(method, path, operation)),
      parameters.length ? [el("h3", {}, "Parameters"), table(["Name", "In", "Type", "Meaning"], parameters)] : null,
      operation.requestBody ? [el("h3", {}, "Body"), content(operation.requestBody)] : null,
      el("h3", {}, "Answers"), responses));
}

async function start() {
  const main = document.getElementById("main"), nav = document.getElementById("nav");
  doc = await (await fetch("openapi.json")).json();
  const operations = Object.entries(doc.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => [path, method, operation]));
  main.replaceChildren(
    el("h1", {}, `${doc.info.title} ${doc.info.version}`), el("p", {}, doc.info.summary), ...prose(doc.info.description),
    el("p", { class: "soft" }, "The same for programs: ", el("a", { href: "openapi.json" }, "openapi.json")));
  for (const tag of doc.tags) {
    main.append(el("h2", { id: tag.name }, tag.name), el("p", { class: "soft" }, tag.description));
    nav.append(el("a", { class: "tag", href: `#${tag.name}` }, tag.name));
    for (const [path, method, operation] of operations) {
      if (!operation.tags.includes(tag.name)) continue;
      main.append(draw(path, method, operation));
      nav.append(el("a", { href: `#${method}${path}` }, operation.summary));
    }
  }
  const open = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (target && target.tagName === "DETAILS") target.open = true;
    if (target) target.scrollIntoView();
  };
  addEventListener("hashchange", open);
  open();
}

start().catch(error => { document.getElementById("main").textContent = `The document could not be read: ${error}`; });
